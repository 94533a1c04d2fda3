"""Hints for errors that `journal/` and `writes/` raise. Only the commands know the options that hints name."""

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress

from escrowctl.client.http import THROTTLED_STATUSES
from escrowctl.config.advice import advise_add_pending, advise_proving_status, advise_remove_pending, advise_setting
from escrowctl.config.service import Service
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Reason, command
from escrowctl.session import Session

Facts = Mapping[str, object]
_MAX_HINTS = 2

_INIT = "journal init --from NEWEST_EXPORT --yes"
INIT_FROM_EXPORT = command(_INIT, "to replace it, after journal export (a shared one: stop all jobs, see help journal)")
"""The hint if escrowctl refuses to use a journal. `journal export` can still read such a journal."""

_USE_REQUIRED = Hint("set ESCROWCTL_JOURNAL to its URL, or ESCROWCTL_HOME to its folder", "to use that journal")
_RESOLVE_FIRST = command("journal resolve {entry}", "resolve {entry} before you repeat the command")
_GET_WITH_KEY = command("tx get {id}", "to read the escrow with the current API key")
_FIND_FIELD = command("doctor --tx {id}", "to find the right field of the record")
_NEW_IDEMPOTENCY_KEY = Hint("use another --idempotency-key", "if this is a different request")
_ALLOW_UNREADABLE = Hint("repeat the command with --allow-unreadable", "to send the write without a read")

_HINTS: Mapping[str, tuple[Hint, ...]] = {
    Reason.CLOSED: (INIT_FROM_EXPORT._replace(label="if the new journal is missing"),),
    Reason.MOVED: (
        Hint("write the URL of {where} in ESCROWCTL_JOURNAL or in the profile's journal, and its id too", "to use it"),
        command("help journal", "if it is closed, gone or another account's (this machine's note: {file})", bare=True),
    ),
    Reason.DAMAGED: (command("journal verify", "to see what is wrong"), INIT_FROM_EXPORT),
    Reason.DISK_FAILED: (command("journal verify", "once the disk works again, to check the journal"),),
    Reason.DISK_FULL: (Hint("make space in {folder}, then repeat the command"),),
    Reason.EXPORT_OF_ANOTHER: (command("journal import EXPORT", "to add the writes of the export to this journal"),),
    Reason.FILE_MISSING: (
        INIT_FROM_EXPORT,
        Hint("mv {folder}/journal.head {folder}/journal.head.old", "or, to start a journal without the earlier writes"),
    ),
    Reason.FILE_UNUSABLE: (Hint("ls -ld {folder}", "check that the folder exists and is writable"),),
    Reason.LOCKED: (Hint("repeat the command"),),
    Reason.NOT_CONNECTED: (
        command("help journal", "check server, URL (sslrootcert), and password (PGPASSWORD, ~/.pgpass)", bare=True),
    ),
    Reason.NOT_CREATED: (
        command("journal init --admin SERVICE", "if the URL's journal=NAME is right, to create it as an administrator"),
    ),
    Reason.NOT_IMPORTED: (command("journal import --own", "to add them"),),
    Reason.NO_DRIVER: (Hint("pip install 'psycopg[binary]'", "in the environment of this tool (or pipx inject)"),),
    Reason.OWN_UNUSABLE: (
        Hint("unset ESCROWCTL_JOURNAL", "to check or replace this machine's own journal first"),
        Hint("move {folder}/journal.* elsewhere; then journal import --own", "if the shared journal has its writes"),
    ),
    Reason.OLDER_FORMAT: (INIT_FROM_EXPORT,),
    Reason.PINNED_ELSEWHERE: (
        _USE_REQUIRED,
        Hint("set the id to this journal's", "if journal init --from made this one of that one"),
    ),
    Reason.PINNED_MISSING: (_USE_REQUIRED, INIT_FROM_EXPORT),
    Reason.BUSY: (command("journal list", "to see that write's result before you repeat yours"),),
    Reason.CAPPED: (
        command("journal list --since {day} --operation {operation}", "to see the counted writes", bare=True),
        command("config get profiles.{profile}.caps", "to see the caps", bare=True),
    ),
    Reason.ID_OF_ANOTHER_ACCOUNT: (
        _GET_WITH_KEY,
        command(
            "config set profiles.PROFILE.account NAME",
            "if the API keys belong to two accounts, name the account of each profile",
            bare=True,
        ),
    ),
    Reason.ID_SPELLED_DIFFERENTLY: (
        command("tx get {id}", "to see what the service reports"),
        Hint("repeat the command with --allow-duplicate {entry}", "if the two ids are separate escrows"),
    ),
    Reason.KEY_OF_ANOTHER_ACCOUNT: (_GET_WITH_KEY, _NEW_IDEMPOTENCY_KEY),
    Reason.KEY_OF_ANOTHER_REQUEST: (command("journal show {entry}", "to see that request"), _NEW_IDEMPOTENCY_KEY),
    Reason.KEY_OF_BATCH: (command("batch resume {batch}", "to send the row with this key"), _NEW_IDEMPOTENCY_KEY),
    Reason.KEY_OF_REFERENCE: (Hint("repeat the command with --reference {reference}", "to send that write again"),),
    Reason.NOT_VERIFIED: (command("journal resolve {entry}", "to check the escrow again and record the result"),),
    Reason.REFERENCE_REUSED: (command("tx get {id}", "to see the earlier escrow"), command("journal show {entry}")),
    Reason.TAKEN_OVER: (
        command("journal resolve {entry} --applied --id {result_id} --reason TEXT", "to record it, if sent once"),
        command("journal list", "to see both attempts"),
        command("help journal", "two paths to one folder, or a process that slept, can be the cause", bare=True),
    ),
    Reason.CREATED_DIFFERENTLY: (command("tx get {id}"),),
    Reason.FIELD_NOT_FOUND: (_FIND_FIELD,),
    Reason.ID_MISREAD: (
        command("journal resolve {entry}", "to read {named} and record it as the id"),
        command("journal resolve {entry} --applied --id {named} --reason TEXT", "or, if {named} cannot be read"),
    ),
    Reason.MONEY_CHANGED: (
        Hint("repeat the command with --expect-amount {amount} --expect-currency {currency}", "if {found} is right"),
        _FIND_FIELD,
    ),
    Reason.NOT_OPENED: (
        command("help journal", "first record each write that may be missing (--already-sent)", bare=True),
        command("journal open --reason TEXT", "then, to open the journal for everybody"),
    ),
    Reason.NO_HISTORY: (
        command("journal init", "create the journal once, on a disk that stays or in a database", bare=True),
        Hint("set ESCROWCTL_JOURNAL_ID to the id that journal init prints", "then, in the job"),
    ),
    Reason.OTHER_STATUS: (command("tx get {id}", "to check {id} again (its status is now {status_after})"),),
    Reason.REFUSED_EARLIER: (_NEW_IDEMPOTENCY_KEY._replace(label="to send the write again"),),
    Reason.SECRET_NOT_STORED: (
        Hint("repeat the original command with --allow-duplicate {entry} (or, if it had a --reference, a new one)"),
    ),
    Reason.UNKNOWN: (_RESOLVE_FIRST,),
    Reason.UNREADABLE: (_ALLOW_UNREADABLE,),
    Reason.UNREADABLE_EVIDENCE: (
        Hint("repeat the command with --allow-unreadable", "to record the decision without reading the escrow"),
    ),
    Reason.WAIT_OVER: (
        command("tx get {id}", "to check the escrow"),
        command("tx watch {id}", "to see when the status changes"),
    ),
    Reason.WEB_PAGE: (_RESOLVE_FIRST, command("doctor", "the reply is a web page; to check base URL and API prefix")),
}
"""Reason -> hints. Braces hold the name of a fact. A hint is left out if a fact that it names is missing."""


def advise(error: EscrowctlError, session: Session) -> EscrowctlError:
    """Return the same error, with the hints for its reason first. Keep only two hints, and clear the reason."""
    if error.reason:
        facts = {name: value for name, value in error.facts.items() if value is not None} | {"code": error.code}
        make_hints = _HINT_MAKERS.get(error.reason)
        hints = make_hints(session.service, facts) if make_hints else _fill_in(_HINTS.get(error.reason, ()), facts)
        error.hints = (*hints, *error.hints)[:_MAX_HINTS]
        error.reason = ""
    return error


def advise_throttled(service: Service) -> tuple[Hint, ...]:
    """Return hints on the setting that lets escrowctl retry a write that the service throttled."""
    goal = "to let escrowctl retry throttled writes, if a 429 or 425 always means that nothing was done"
    return advise_setting(service, "retry_throttled", "true", goal)


def _fill_in(hints: tuple[Hint, ...], facts: Facts) -> tuple[Hint, ...]:
    """Fill the facts into the hints, quoted for a shell in commands. Leave out a hint that lacks a fact."""
    quoted = {name: shlex.quote(str(value)) for name, value in facts.items()}
    filled = []
    for hint in hints:
        with suppress(KeyError):
            filled.append(hint._replace(text=hint.text.format_map(quoted), label=hint.label.format_map(facts)))
    return tuple(filled)


def _advise_earlier_unknown(_service: Service, facts: Facts) -> tuple[Hint, ...]:
    resolve = _fill_in((command("journal resolve {entry}", "to resolve {entry}"),), facts)
    duplicates = facts.get("duplicates")
    if not isinstance(duplicates, list) or not duplicates:
        return resolve
    is_create = facts.get("verb") == CREATE_TRANSACTION.verb
    goal = "to create a second one anyway" if is_create else "to send it again anyway"
    allowed = " ".join(f"--allow-duplicate {name}" for name in duplicates)
    return (*resolve, Hint(f"repeat the command with {allowed}", goal))


def _advise_unrecognised_id(service: Service, facts: Facts) -> tuple[Hint, ...]:
    pointer = facts.get("pointer")
    goal = f"if the field {pointer} is the id" if pointer else "if you know which field of the reply is the id"
    setting = advise_setting(service, "reply.id", shlex.quote(str(pointer or "/FIELD")), goal)
    return (*setting, *_fill_in((command("journal resolve {entry}", "then resolve {entry}"),), facts))


def _advise_in_progress(service: Service, facts: Facts) -> tuple[Hint, ...]:
    wait = command(f"tx wait {{id}} --for {RELEASE_TRANSACTION.done}", "to wait for the release")
    hints = _fill_in((wait if service.released else command("tx watch {id}", "to see when the status changes"),), facts)
    return (*hints, *advise_remove_pending(service, str(facts["status"])))


def _advise_not_confirmed(service: Service, facts: Facts) -> tuple[Hint, ...]:
    """Return hints for an unconfirmed write. None sets which status means released: a mistake hides failures."""
    before, after = facts.get("status_before"), facts.get("status_after")
    again = command("journal resolve {entry}", "to check the escrow again")
    if after is None:
        return _fill_in((again, _FIND_FIELD), facts)
    # Only for a release, the profile may say which statuses mean that it is in progress.
    may_be_pending = before not in (None, after) and facts["code"] is ErrorCode.NOT_RELEASED
    pending = advise_add_pending(service, str(after), RELEASE_TRANSACTION.verb) if may_be_pending else ()
    return (*_fill_in((again,), facts), *pending)


_HINT_MAKERS: Mapping[str, Callable[[Service, Facts], tuple[Hint, ...]]] = {
    Reason.EARLIER_UNKNOWN: _advise_earlier_unknown,
    Reason.ID_NOT_RECOGNISED: _advise_unrecognised_id,
    Reason.IN_PROGRESS: _advise_in_progress,
    Reason.MAY_BE_IN_PROGRESS: lambda service, facts: (
        *_fill_in((command("journal resolve {entry}", "to check again later"),), facts),
        *advise_remove_pending(service, str(facts["status"])),
    ),
    Reason.NO_STATUS: lambda service, _: (
        *advise_setting(service, "reply.status", "/FIELD", "if a field of the record has the status"),
        _ALLOW_UNREADABLE,
    ),
    Reason.NOT_CONFIRMED: _advise_not_confirmed,
    Reason.REFUSED: lambda service, facts: (
        advise_throttled(service) if facts.get("http_status") in THROTTLED_STATUSES else ()
    ),
    Reason.SEEMS_DONE: lambda service, _: advise_proving_status(service, RELEASE_TRANSACTION.done),
}
"""Reason -> function that makes the hints. These hints depend on the service or on several facts."""
