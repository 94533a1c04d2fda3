"""Checks that read from the service: whether it accepts the key, its API prefix, and its clock."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple

from escrowctl.client.http import Exchange
from escrowctl.client.problem import REDIRECT_STATUSES, advise_connection
from escrowctl.client.reader import Reader
from escrowctl.client.retry import parse_http_date
from escrowctl.config.origin import ends_with_prefix
from escrowctl.config.service import Service
from escrowctl.contract.operations import API_PREFIXES, LIST_TRANSACTIONS, LIST_WEBHOOKS, Operation
from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command
from escrowctl.runtime import Clock

_MAX_CLOCK_SKEW_SECONDS = 60
_NO_API_STATUSES = (404, 405, 410, *REDIRECT_STATUSES)
_DENIED_CODES = (ErrorCode.NOT_AUTHENTICATED, ErrorCode.FORBIDDEN)


class Probe(NamedTuple):
    """The result of one request for a list. `error` is None if it succeeded. `finished_at` is its time."""

    path: str
    exchange: Exchange | None
    error: EscrowctlError | None
    finished_at: datetime

    @property
    def status(self) -> int | None:
        """The HTTP status of the answer, or None without an answer."""
        return self.exchange.answer.status if self.exchange and self.exchange.answer else None

    @property
    def is_not_json(self) -> bool:
        """Whether there is an answer that is not JSON."""
        return self.error is not None and self.error.code is ErrorCode.UNREADABLE_REPLY

    def __str__(self) -> str:
        return f"GET {self.path} {self.status or 'without a reply'}{', but not JSON' if self.is_not_json else ''}"


SendProbe = Callable[[Service, Operation], Probe]


def request_list(
    open_reader: Callable[[Service], AbstractContextManager[Reader]], now: Clock, service: Service, operation: Operation
) -> Probe:
    """Request a list and return the result. Its `exchange` is None if no reader could be opened."""
    exchange = error = None
    try:
        with open_reader(service) as reader:
            try:
                reader.probe(operation)
            finally:
                exchange = reader.connection.last
    except EscrowctlError as failure:
        error = failure
    return Probe(f"{service.api_prefix}{operation.path}", exchange, error, now())


def check_access(service: Service, probe: Probe, send_probe: SendProbe) -> tuple[Finding, str | None]:
    """Return (finding, None), or (finding, prefix) if the key works only with an API prefix that is not configured.

    `probe` is the result of a request for the list of webhooks. `send_probe` sends further requests.
    """
    error = probe.error
    if error is None:
        return Finding("access", Verdict.OK, str(probe)), None
    # The service has no API under this path.
    if probe.is_not_json or probe.status in _NO_API_STATUSES:
        return _try_api_prefixes(service, probe, send_probe)
    if error.code is ErrorCode.FORBIDDEN:
        transactions = send_probe(service, LIST_TRANSACTIONS)
        if transactions.error is None:
            found = f"{probe}; {transactions}: the key has no right to list webhooks"
            return Finding("access", Verdict.WARNING, found), None
    hints = error.hints
    if error.code in _DENIED_CODES and service.profile is not None:
        hints = (command(f"auth login -p {service.profile}", "to store another key", bare=True),)
    return Finding("access", Verdict.FAILED, error.message, hints), None


def _try_api_prefixes(service: Service, probe: Probe, send_probe: SendProbe) -> tuple[Finding, str | None]:
    assert probe.error is not None, "the path is absent"
    for prefix in API_PREFIXES:
        if prefix == service.api_prefix or ends_with_prefix(service.origin, prefix):
            continue
        other = send_probe(service._replace(api_prefix=prefix), LIST_WEBHOOKS)
        if other.error is None or other.error.code in _DENIED_CODES:
            hint = command(f"config set api_prefix {prefix}")
            if service.profile is None:
                login = f"auth login --base-url {service.origin.base_url} --api-prefix {prefix}"
                hint = command(login, "only a profile can have an API prefix", bare=True)
            finding = Finding("access", Verdict.FAILED, f"{probe}; {other}", (hint,))
            return finding, prefix if other.error is None else None
    return Finding("access", Verdict.FAILED, probe.error.message, (advise_connection(service, ""),)), None


def check_clock(probe: Probe) -> Finding:
    """Compare this machine's clock with the Date header of the answer (RFC 9110 section 6.6.1)."""
    answer = probe.exchange.answer if probe.exchange else None
    date = parse_http_date(answer.find_header("Date") or "") if answer else None
    if answer is None or date is None:
        return Finding("clock", Verdict.SKIPPED, "the service sent no date")
    if (answer.find_header("Age") or "0").strip("0"):
        return Finding("clock", Verdict.SKIPPED, "a cache answered in place of the service")
    ahead = round((probe.finished_at - date).total_seconds())
    seconds, direction = abs(ahead), "ahead of" if ahead > 0 else "behind"
    if seconds <= _MAX_CLOCK_SKEW_SECONDS:
        return Finding("clock", Verdict.OK, f"within {_MAX_CLOCK_SKEW_SECONDS} s of the service's clock")
    found = f"{seconds} s {direction} the service's clock ({date:%Y-%m-%d %H:%M:%S} UTC)"
    return Finding("clock", Verdict.WARNING, found, (Hint("timedatectl status", "if this machine's clock is wrong"),))
