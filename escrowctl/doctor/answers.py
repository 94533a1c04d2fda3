"""Checks with two reads of the service: the API prefix, whether it accepts the key, and its clock."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from escrowctl.client.http import Exchange
from escrowctl.client.problem import REDIRECTS, connection_hint
from escrowctl.client.reader import Reader
from escrowctl.client.retry import parse_date
from escrowctl.config.origin import ends_in
from escrowctl.config.service import Service
from escrowctl.contract.operations import API_PREFIXES, LIST_TRANSACTIONS, LIST_WEBHOOKS, Operation, Standing
from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command

OpenReader = Callable[[Service], AbstractContextManager[Reader]]

_CLOCK_SECONDS = 60
_NO_SUCH_PATH = frozenset({404, 405, 410})


class Answered(Enum):
    """The meanings of an answer for the path that was read, best first."""

    WORKS = 0
    DENIED = 1
    FAILED = 2
    ABSENT = 3


class Probe(NamedTuple):
    """One read and its result. `error` is None if the service answered as it should. `at`: by this machine's clock."""

    prefix: str
    operation: Operation
    exchange: Exchange | None
    error: EscrowctlError | None
    at: datetime

    @property
    def answered(self) -> Answered:
        """The meaning of the answer for the path."""
        if self.error is None:
            return Answered.WORKS
        match self.error.code:
            case ErrorCode.NOT_AUTHENTICATED | ErrorCode.FORBIDDEN:
                return Answered.DENIED
            case ErrorCode.NOT_FOUND | ErrorCode.REDIRECTED | ErrorCode.UNREADABLE_REPLY:
                return Answered.ABSENT
            case _:
                is_absent = self.status in _NO_SUCH_PATH or self.status in REDIRECTS
                return Answered.ABSENT if is_absent else Answered.FAILED

    @property
    def status(self) -> int | None:
        """The status of the answer, if there is one."""
        return self.exchange.answer.status if self.exchange and self.exchange.answer else None

    @property
    def path(self) -> str:
        """The path that was read, with its prefix."""
        return f"{self.prefix}{self.operation.path}"

    def __str__(self) -> str:
        no_json = ", but no JSON" if self.error and self.error.code is ErrorCode.UNREADABLE_REPLY else ""
        return f"GET {self.path} {self.status or 'without a reply'}{no_json}"


def ask(open_reader: OpenReader, service: Service, now: Callable[[], datetime]) -> list[Probe]:
    """Read two lists, the documented one first. If that gets no answer, do not read the other."""
    probes: list[Probe] = []
    try:
        with open_reader(service) as reader:
            for operation in (LIST_WEBHOOKS, LIST_TRANSACTIONS):
                error = _try(reader, operation)
                probes.append(Probe(service.api_prefix, operation, reader.last, error, now()))
                if probes[-1].status is None:
                    break
    except EscrowctlError as error:
        # The settings of the connection cannot be used: nothing was sent.
        probes.append(Probe(service.api_prefix, LIST_WEBHOOKS, None, error, now()))
    return probes


def _try(reader: Reader, operation: Operation) -> EscrowctlError | None:
    try:
        reader.probe(operation)
    except EscrowctlError as error:
        return error
    return None


def ask_other_prefixes(
    service: Service, probes: Sequence[Probe], ask_one: Callable[[Service], list[Probe]]
) -> list[Probe]:
    """Return the answers under the interface's other prefixes; none if the chosen one works or the service fails."""
    if _best(probes).answered in (Answered.WORKS, Answered.FAILED):
        return []
    others = [one for one in API_PREFIXES if one != service.api_prefix and not ends_in(service.origin, one)]
    return [probe for prefix in others for probe in ask_one(service._replace(api_prefix=prefix))]


def check_prefix(service: Service, probes: Sequence[Probe], others: Sequence[Probe]) -> tuple[Finding, str | None]:
    """Check under which prefix the service answers. Also return another prefix that certainly works, if any."""
    own, best = _best(probes), _best([*probes, *others])
    shown = f"{own}; {best}" if best.prefix != own.prefix else str(own)
    name = service.api_prefix or "(no prefix)"
    if own.answered is Answered.WORKS:
        return Finding("prefix", Verdict.OK, f"{name} answers"), None
    if best.answered is Answered.WORKS:
        return Finding("prefix", Verdict.FAILED, shown, _set(service, best.prefix)), best.prefix
    if own.answered is Answered.FAILED:
        return Finding("prefix", Verdict.UNCLEAR, f"{own}: run this again once the service works"), None
    if own.answered is Answered.DENIED and _are_absent(others):
        return Finding("prefix", Verdict.OK, f"{name} answers"), None
    if best.answered is Answered.ABSENT:
        return Finding("prefix", Verdict.FAILED, _describe([own, *others]), (connection_hint(service, ""),)), None
    hints = () if own.answered is Answered.DENIED else _set(service, best.prefix)
    both = f"{_describe([own, *others])}: which prefix is right shows once the key is accepted"
    return Finding("prefix", Verdict.UNCLEAR, both, hints), None


def check_access(service: Service, probes: Sequence[Probe]) -> Finding:
    """Check whether the service accepts the key, by the answers under one prefix."""
    documented = next(probe for probe in probes if probe.operation.standing is Standing.PUBLISHED)
    others = [probe for probe in probes if probe is not documented]
    undocumented = "".join(f"; {probe}{'' if probe.error is None else ' (undocumented)'}" for probe in others)
    error = documented.error
    if error is None:
        return Finding("access", Verdict.OK, f"{documented}{undocumented}")
    if error.code is ErrorCode.FORBIDDEN and any(probe.error is None for probe in others):
        return Finding("access", Verdict.WARNING, f"{documented}{undocumented}: the key may not list webhooks")
    hints = (*error.hints, *_advise(service, error))
    return Finding("access", Verdict.FAILED, f"{_explain(documented, error)}{undocumented}", hints)


def check_clock(probe: Probe) -> Finding:
    """Check this machine's clock against the Date of an answer (RFC 9110 section 6.6.1)."""
    answer = probe.exchange.answer if probe.exchange else None
    date = parse_date(answer.header("Date") or "") if answer else None
    if answer is None or date is None:
        return Finding("clock", Verdict.SKIPPED, "the service sent no date")
    if (answer.header("Age") or "0").strip("0"):
        return Finding("clock", Verdict.SKIPPED, "a cache replied, not the service")
    seconds = round((probe.at - date).total_seconds())
    if abs(seconds) <= _CLOCK_SECONDS:
        return Finding("clock", Verdict.OK, f"within {_CLOCK_SECONDS} s of the service's")
    which = "ahead of" if seconds > 0 else "behind"
    hint = Hint("timedatectl status", "if this machine is wrong")
    return Finding(
        "clock", Verdict.WARNING, f"{abs(seconds)} s {which} the service's ({date:%Y-%m-%d %H:%M:%S} UTC)", (hint,)
    )


def best_of(probes: Sequence[Probe], others: Sequence[Probe]) -> list[Probe]:
    """Return the answers under the prefix that has the best one."""
    prefix = _best([*probes, *others]).prefix
    return [probe for probe in (*probes, *others) if probe.prefix == prefix]


def _best(probes: Sequence[Probe]) -> Probe:
    return min(probes, key=lambda probe: probe.answered.value)


def _are_absent(probes: Sequence[Probe]) -> bool:
    return all(probe.answered is Answered.ABSENT for probe in probes)


def _describe(probes: Sequence[Probe]) -> str:
    first = {probe.prefix: probe for probe in reversed(probes)}
    return "; ".join(str(probe) for probe in reversed(first.values()))


def _explain(probe: Probe, error: EscrowctlError) -> str:
    match error.code:
        case ErrorCode.NOT_AUTHENTICATED:
            return f"{probe}: the service does not accept the key"
        case ErrorCode.FORBIDDEN:
            return f"{probe}: the service does not permit this with the key"
        case _:
            return error.message.removesuffix(".")


def _advise(service: Service, error: EscrowctlError) -> tuple[Hint, ...]:
    """Return hints for a refused key or a failing service."""
    if error.code not in (ErrorCode.NOT_AUTHENTICATED, ErrorCode.FORBIDDEN):
        request = error.facts.get("request_id")
        return () if error.hints or request is None else (Hint(f"ask the service's support about request {request}"),)
    if service.profile is None:
        return ()
    return (command(f"auth login -p {service.profile}", "to store another key", bare=True),)


def _set(service: Service, prefix: str) -> tuple[Hint, ...]:
    if service.profile is not None:
        return (command(f"config set api_prefix {prefix}"),)
    line = f"auth login --base-url {service.origin.base_url} --api-prefix {prefix}"
    return (command(line, "only a profile has a prefix", bare=True),)
