"""Makes the checks of `escrowctl doctor` in order, shows the findings, and stores settings for `--save`."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from escrowctl.commands.advice import advise
from escrowctl.commands.config import open_editor, report_saved
from escrowctl.config.file import require_trusted
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import GET_TRANSACTION, LIST_WEBHOOKS
from escrowctl.doctor import network
from escrowctl.doctor.answers import check_access, check_clock, request_list
from escrowctl.doctor.finding import Finding, Verdict, make_failure
from escrowctl.doctor.journal import check_database, check_journal, check_locks
from escrowctl.doctor.record import FIELDS, RecordCheck, find_create
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command
from escrowctl.journal.model import Selection
from escrowctl.output.errors import align_hints
from escrowctl.output.view import Listing, View
from escrowctl.session import Session

_COLUMNS = ("check", "verdict", "finding")
_GOOD_VERDICTS = (Verdict.OK, Verdict.FOUND, Verdict.SKIPPED)
_NOT_CONFIGURED_HINTS = (
    command("auth login", "with an account", bare=True),
    command("--sandbox doctor", "without an account", bare=True),
)


def run_checks(session: Session, resource_id: str | None, *, save: bool) -> None:
    """Make every check and show the findings. If `save`, store the settings that the checks have proved.

    `resource_id` is an escrow whose record is checked too. Raises EscrowctlError: `CHECK_FAILED` if a check failed,
    `BAD_VALUE` for an invalid id. If `save`, also raises `BAD_CONFIG`, `BUSY` and `STATE_UNUSABLE`.
    """
    if resource_id is not None:
        parse_id(resource_id)
    session.learn_stored_keys()
    checkup = _Checkup(session, resource_id)
    shown = list(checkup.run())
    profile = checkup.service.profile if checkup.service else None
    if save and profile and checkup.new_settings:
        editor = open_editor(session)
        for name, (setting, value) in checkup.new_settings.items():
            path = ("profiles", profile, *setting.split("."))
            report_saved(session, path, editor.set(path, value))
            shown = [one._replace(verdict=Verdict.FOUND, hints=()) if one.name == name else one for one in shown]
    elif save:
        reason = "no new setting was found" if profile else "no profile is in use"
        session.console.note("nothing_saved", f"nothing was saved: {reason}")
    _show_findings(session, shown)
    if failed := [one.name for one in shown if one.verdict is Verdict.FAILED]:
        names = ", ".join(failed)
        raise EscrowctlError(ErrorCode.CHECK_FAILED, f"{len(failed)} of {len(shown)} checks failed: {names}.")


class _Checkup:
    """The checks of one run. A check is not made if its input is missing because an earlier check failed.

    `service` is None until config, key and proxy pass their checks. `new_settings`: check -> (setting, value).
    """

    def __init__(self, session: Session, resource_id: str | None) -> None:
        self._session = session
        self._resource_id = resource_id
        self.service: Service | None = None
        self.new_settings: dict[str, tuple[str, str]] = {}

    def run(self) -> Iterator[Finding]:
        """Make the checks, and yield the finding of each check that is made."""
        if self._session.options.sandbox:
            try:
                self.service = self._session.service
                yield Finding("base_url", Verdict.OK, "the built-in sandbox")
            except EscrowctlError as error:
                yield make_failure("base_url", error)
        else:
            yield from self._check_settings()
        is_reached = False
        if self.service is not None:
            for finding in self._check_service(self.service):
                is_reached = finding.name == "clock"
                yield finding
        yield from self._check_journal()
        if self._resource_id is not None and self.service is not None and is_reached:
            yield from self._check_record(self.service, self._resource_id)

    def _check_settings(self) -> Iterator[Finding]:
        """Check config file, service and key. Stop at the first error: each needs the result of the one before."""
        resolver, environ, name = self._session.resolver, self._session.runtime.environ, "config"
        path = resolver.config_path
        try:
            config = resolver.config
            # No other user may change the file or read the stored keys.
            require_trusted(path)
            resolver.credentials.read()
            if config is None:
                yield Finding(name, Verdict.SKIPPED, f"there is no {path}")
            else:
                yield Finding(name, Verdict.OK, f"{path} is valid; profiles: {', '.join(config.profiles) or 'none'}")
            name = "base_url"
            choice = resolver.choose()
            yield Finding(name, Verdict.OK, f"{choice.origin.base_url}, {choice.mode} (from {choice.source})")
            name = "key"
            key = resolver.find_key(choice)
        except EscrowctlError as error:
            if name == "config":
                error.hints = error.hints or (Hint(f"vi {shlex.quote(str(path))}", "to correct it"),)
            if error.code is ErrorCode.NOT_CONFIGURED:
                error.hints = _NOT_CONFIGURED_HINTS
            yield make_failure(name, error)
            return
        self._session.keys.protect(key.key)
        yield Finding("key", Verdict.OK, f"from {key.source}")
        try:
            name = "proxy"
            yield network.check_proxy(choice.origin, environ)
            name = "tls"
            service = resolver.build_service(choice, key)
            service.refuse_key_in_names()
        except EscrowctlError as error:
            yield make_failure(name, error)
            return
        self.service = service
        if service.live and not service.released:
            why = "status.released is not set: each release ends as accepted, not confirmed"
            yield Finding("released", Verdict.WARNING, why, (command("help settings", bare=True),))

    def _check_service(self, service: Service) -> Iterator[Finding]:
        """Check the connection to the service, then its replies. Stop if the service cannot be reached."""
        session = self._session
        if not service.sandbox:
            dns = network.check_host_name(service, monotonic=session.runtime.monotonic)
            yield dns
            if dns.verdict is Verdict.FAILED:
                return
        ask_list = partial(request_list, session.connector.open_reader, session.runtime.now)
        probe = ask_list(service, LIST_WEBHOOKS)
        if probe.exchange is None and probe.error is not None:
            yield make_failure("tls", probe.error)
            return
        if probe.exchange is not None and not session.connector.is_in_process(service):
            hints = probe.error.hints if probe.error else ()
            for finding in network.check_connection(probe.exchange, service, hints=hints, now=probe.finished_at):
                yield finding
                if finding.verdict is Verdict.FAILED:
                    return
        finding, prefix = check_access(service, probe, ask_list)
        yield finding
        if prefix is not None:
            self.new_settings["access"] = ("api_prefix", prefix)
            self.service = service._replace(api_prefix=prefix)
        yield check_clock(probe)

    def _check_journal(self) -> Iterator[Finding]:
        session, name = self._session, "journal"
        try:
            shared, now = session.journals.shared_place, session.runtime.now
            if shared is None:
                yield check_locks(session.journals.place)
            elif shared.exists:
                yield check_database(shared, now)
            yield from check_journal(session.journal_to_read, session.runtime.monotonic)
            name = "history"
            if self.service is not None and self.service.live and not self.service.read_only:
                session.journals.require_history(self.service)
                name = "imported"
                session.journals.require_imported(self.service)
                session.journals.require_shared(self.service)
        except EscrowctlError as error:
            # Another check has reported the wrong setting.
            if self.service is not None or error.code not in (ErrorCode.BAD_CONFIG, ErrorCode.BAD_VALUE):
                found = make_failure(name, advise(error, session))
                yield found._replace(verdict=Verdict.WARNING) if name == "history" else found

    def _check_record(self, service: Service, resource_id: str) -> Iterator[Finding]:
        try:
            with self._session.connector.open_reader(service) as reader:
                record = reader.read(GET_TRANSACTION, resource_id)
            entries = [*self._session.journal_to_read.select_all(Selection(result_ids=(resource_id,)))]
        except EscrowctlError as error:
            yield make_failure("record", error)
            return
        examination = RecordCheck(record, resource_id, service.pointers, find_create(entries, service.journal_names))
        yield from map(examination.check, FIELDS)
        for field, pointer in examination.found_pointers.items():
            self.new_settings[field] = (f"reply.{field}", pointer)


def _show_findings(session: Session, findings: Sequence[Finding]) -> None:
    """Show the findings. Without `--json`, also print each hint on its own line, so that it can be copied."""
    shown = [one for one in findings if not (session.options.quiet and one.verdict in _GOOD_VERDICTS)]
    star, views = session.keys.star, []
    for one in shown:
        document: dict[str, JsonValue] = {
            "name": one.name,
            "verdict": one.verdict.value,
            "finding": star(one.description),
            "hint": star("\n".join(align_hints(one.hints, session.invocation)) or None),
        }
        views.append(View(document, one.name, named={"check": one.name, **document}, record=document))
    ok = all(one.verdict is not Verdict.FAILED for one in findings)
    checks: list[JsonValue] = [view.document for view in views]
    session.console.show_listing(Listing(_COLUMNS, tuple(views), {"checks": checks, "ok": ok}))
    if not session.options.json:
        for one in shown:
            for hint in align_hints(one.hints, session.invocation):
                session.console.note("hint", f"{one.name}: {hint}", label="hint")
