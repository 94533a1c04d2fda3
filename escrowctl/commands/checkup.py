"""The checks of `escrowctl doctor` in their order; shows the findings and stores settings."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from escrowctl.commands.advice import advise
from escrowctl.commands.config import open_editor, report_saved
from escrowctl.config.effective import list_sandbox_settings, list_settings
from escrowctl.config.origin import find_proxy_name
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.doctor import answers, network, settings
from escrowctl.doctor.finding import Finding, Verdict, fail, skip
from escrowctl.doctor.journal import check_journal, check_locks
from escrowctl.doctor.record import FIELDS, Examination, find_sent
from escrowctl.errors import ErrorCode, EscrowctlError, Hint
from escrowctl.output.errors import hint_lines
from escrowctl.output.view import Listing, View
from escrowctl.session import Session

if TYPE_CHECKING:
    from escrowctl.config.service import Service
    from escrowctl.config.settings import Choice

_COLUMNS = ("check", "verdict", "finding")
_IN_ORDER = (Verdict.OK, Verdict.FOUND, Verdict.SKIPPED)
_WAY, _ANSWERS = ("tcp", "tls"), ("prefix", "access", "clock")


def check_up(session: Session, tx: str | None, *, save: bool) -> None:
    """Make every check and show the findings. If `save`, store the settings that are certain.

    Raises EscrowctlError: `CHECK_FAILED` if a check failed, `BAD_VALUE` if `tx` is no id.
    """
    if tx is not None:
        parse_id(tx)
    session.learn_stored_keys()
    checkup = _Checkup(session, tx)
    findings = [*checkup.run()]
    saved = checkup.save(findings) if save else {}
    _show(session, findings)
    for setting, value in saved.items():
        report_saved(session, checkup.place(setting), value)
    if save and not saved:
        why = "nothing new is certain"
        if not checkup.may_save:
            why = f"no profile is in use; {session.invocation.program} auth login creates one"
        session.console.note("nothing_saved", f"nothing is saved: {why}")
    if failed := _failed(findings):
        names = ", ".join(dict.fromkeys(one.name for one in failed))
        hints = tuple(hint for one in failed for hint in _labelled(one))
        raise EscrowctlError(
            ErrorCode.CHECK_FAILED, f"{len(failed)} of {len(findings)} checks failed: {names}.", hint=hints
        )


class _Checkup:
    """All checks of one run. A check is skipped if its inputs are unknown. `found`: settings that are certain."""

    def __init__(self, session: Session, tx: str | None) -> None:
        self._session = session
        self._tx = tx
        self._choice: Choice | None = None
        self._service: Service | None = None
        self._has_journal = False
        self.found: dict[str, str] = {}

    def run(self) -> Iterator[Finding]:
        """Yield every finding, from the local files to the record at the service."""
        yield from self._check_sandbox() if self._session.options.sandbox else self._check_settings()
        yield from self._check_service()
        yield from self._check_journal()
        if self._tx is not None:
            yield from self._check_record(self._tx)

    def place(self, setting: str) -> tuple[str, ...]:
        """Return the path in config.toml of a setting of the profile in use."""
        assert self._choice is not None
        assert self._choice.profile_name is not None, "nothing is saved without a profile"
        return ("profiles", self._choice.profile_name, *setting.split("."))

    @property
    def may_save(self) -> bool:
        """Whether there is a profile to save settings in."""
        return not self._session.options.sandbox and self._choice is not None and self._choice.profile_name is not None

    def save(self, findings: list[Finding]) -> dict[str, str]:
        """Store the found settings and return them. Update the findings accordingly."""
        if not self.found or self._choice is None or self._choice.profile_name is None:
            return {}
        try:
            editor = open_editor(self._session)
            for setting, value in self.found.items():
                editor.set(self.place(setting), value)
        except EscrowctlError as error:
            findings.append(fail("save", error))
            return {}
        names = {setting.removeprefix("reply.").removeprefix("api_") for setting in self.found}
        findings[:] = [one._replace(verdict=Verdict.FOUND, hints=()) if one.name in names else one for one in findings]
        return self.found

    def _check_sandbox(self) -> Iterator[Finding]:
        yield from skip("the sandbox does not use config.toml", "config", "files")
        try:
            service = self._service = self._session.service
        except EscrowctlError as error:
            yield fail("base_url", error)
            yield from skip("there is no sandbox", "key")
        else:
            where = "the sandbox, in this process" if self._session.is_in_process else service.origin.base_url
            yield Finding("base_url", Verdict.OK, f"{where} (from {service.url_source})")
            yield Finding("key", Verdict.OK, f"from {service.key_source}")
        yield from settings.check_settings(lambda: list_sandbox_settings(self._session.options.timeout))
        yield from skip("the sandbox uses none", "proxy")

    def _check_settings(self) -> Iterator[Finding]:
        resolver, environ = self._session.resolver, self._session.runtime.environ
        config = settings.check_config(resolver)
        yield config
        if config.verdict is Verdict.FAILED:
            yield from skip("the config file cannot be used", "base_url", "key")
        else:
            finding, self._choice = settings.choose_service(resolver)
            yield finding
            yield from self._check_choice(self._choice) if self._choice else skip("no service is known", "key")
        files = settings.list_files(resolver, self._choice, environ)
        yield from settings.check_files(resolver, files)
        if self._choice is None:
            yield from skip("no service is known", "proxy", "settings")
            return
        proxy = network.check_proxy(self._choice.origin, environ)
        yield proxy
        if proxy.verdict is Verdict.FAILED:
            yield from skip("the proxy cannot be used", "settings")
        else:
            yield from settings.check_settings(lambda: list_settings(resolver, self._session.line, environ))

    def _check_choice(self, choice: "Choice") -> Iterator[Finding]:
        """Check the key of the chosen service. If there is one, build the service."""
        resolver = self._session.resolver
        finding, found = settings.find_key(resolver, choice)
        yield finding
        if found is None:
            return
        self._session.keep_secret(found.key)
        # The checks of proxy and settings report the same errors.
        with contextlib.suppress(EscrowctlError):
            self._service = resolver.build_service(choice, found)
        if self._service is not None:
            self._service.refuse_key_in_names()

    def _check_service(self) -> Iterator[Finding]:
        session, service = self._session, self._service
        if session.options.sandbox:
            yield from skip("the sandbox is on this machine", "dns")
        elif self._choice is not None:
            origin = self._choice.origin
            name = network.check_name(origin, session.runtime.environ, monotonic=session.runtime.monotonic)
            yield name
            service = None if name.verdict is Verdict.FAILED else service
        else:
            yield from skip("no service is known", "dns")
        if service is None:
            self._service = None
            yield from skip("needs a service, its key and its address", *_WAY, *_ANSWERS)
            return
        probes = self._ask(service)
        way = [*self._check_way(service, probes[0])]
        yield from way
        yield from self._check_answers(service, probes, reached=all(one.verdict is not Verdict.FAILED for one in way))

    def _check_way(self, service: "Service", probe: answers.Probe) -> Iterator[Finding]:
        if service.sandbox and self._session.is_in_process:
            yield from skip("the sandbox is in this process", *_WAY)
        elif probe.exchange is None and probe.error is not None:
            yield from skip("the certificates to trust cannot be used", "tcp")
            yield fail("tls", probe.error)
        elif probe.exchange is not None:
            proxy = find_proxy_name(self._session.runtime.environ) if service.network.proxy else None
            hints = probe.error.hints if probe.error else ()
            yield from network.check_way(probe.exchange, service, proxy_name=proxy, hints=hints, now=probe.at)

    def _check_answers(self, service: "Service", probes: list[answers.Probe], *, reached: bool) -> Iterator[Finding]:
        if not reached:
            self._service = None
            yield from skip("the service was not reached", *_ANSWERS)
            return
        others = answers.ask_other_prefixes(service, probes, self._ask)
        finding, prefix = answers.check_prefix(service, probes, others)
        yield finding
        if prefix is not None:
            self.found["api_prefix"] = prefix
            self._service = service._replace(api_prefix=prefix)
        if finding.verdict is Verdict.FAILED and prefix is None:
            yield from skip("the API was not found", "access")
        else:
            yield answers.check_access(service, answers.best_of(probes, others))
        yield answers.check_clock(probes[0])

    def _ask(self, service: "Service") -> list[answers.Probe]:
        return answers.ask(self._session.open_reader, service, self._session.runtime.now)

    def _check_journal(self) -> Iterator[Finding]:
        session = self._session
        try:
            folder = session.sandbox_folder if session.options.sandbox else session.folders.state
        except EscrowctlError as error:
            yield fail("journal", error)
            return
        with_hints = partial(advise, session=session)
        may_be_used = False
        for finding in check_journal(lambda: session.journal_to_read, session.runtime.monotonic, advise=with_hints):
            if finding.name == "journal":
                may_be_used = finding.verdict in (Verdict.OK, Verdict.SKIPPED)
                self._has_journal = finding.verdict is Verdict.OK
            yield finding
        if may_be_used and self._service is not None and not self._service.read_only:
            try:
                session.require_history(self._service)
            except EscrowctlError as error:
                yield fail("history", with_hints(error))._replace(verdict=Verdict.WARNING)
        yield check_locks(folder)

    def _check_record(self, resource_id: str) -> Iterator[Finding]:
        service = self._service
        if service is None:
            yield from skip("the service was not reached", *FIELDS)
            return
        try:
            with self._session.open_reader(service) as reader:
                record = reader.read(GET_TRANSACTION, resource_id)
            entries = self._session.journal_to_read.find_created([resource_id]) if self._has_journal else []
        except EscrowctlError as error:
            yield fail("record", error)
            yield from skip("the record could not be read", *FIELDS)
            return
        examination = Examination(record, resource_id, service.pointers, find_sent(entries, service.names))
        yield from examination.check()
        self.found |= {f"reply.{field}": pointer for field, pointer in examination.found.items()}


def _show(session: Session, findings: Sequence[Finding]) -> None:
    """Show the findings. Below a table, hints are separate lines, which can be copied."""
    options = session.options
    shown = [one for one in findings if not (options.quiet and one.verdict in _IN_ORDER)]
    views = tuple(_view(session, one) for one in shown)
    checks: list[JsonValue] = [view.document for view in views]
    # -q has selected the findings above; it must not print ids here.
    options.quiet = False
    has_cells = options.json or options.raw or options.csv or not session.runtime.stdout.isatty()
    is_table = options.table or not has_cells
    if shown or options.json or options.raw:
        document: JsonValue = {"checks": checks, "ok": not _failed(findings)}
        session.console.show_listing(Listing(_COLUMNS if is_table else (*_COLUMNS, "hint"), views, document))
    for one in shown if is_table else ():
        if one.verdict is not Verdict.FAILED:
            for hint in hint_lines(tuple(_labelled(one)), session.invocation):
                session.console.note("hint", hint, word="hint")


def _view(session: Session, finding: Finding) -> View:
    # One call each: hints of one call would be aligned with each other.
    hints = [line for hint in finding.hints for line in hint_lines((hint,), session.invocation)]
    star = session.keys.star
    document: dict[str, JsonValue] = {
        "name": finding.name,
        "verdict": finding.verdict.value,
        "finding": star(finding.finding),
        "hint": star("\n".join(hints) or None),
    }
    named = {"check": finding.name, **document, "hint": star("; ".join(hints))}
    return View(document, finding.name, named=named, record=document)


def _failed(findings: Sequence[Finding]) -> list[Finding]:
    return [one for one in findings if one.verdict is Verdict.FAILED]


def _labelled(finding: Finding) -> Iterator[Hint]:
    """Yield the hints of a finding, each with the name of its check."""
    for hint in finding.hints:
        yield hint._replace(label=f"{finding.name}, {hint.label}" if hint.label else finding.name)
