"""Functions that the write commands share: check options, show a dry run, confirm a write, show its result."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from escrowctl.client.http import STARRED_KEY_HEADER, redact_headers
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import Defect, JsonValue, UnreadableReply, read_reply
from escrowctl.contract.money import may_be_profile_currency, parse_currency
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import KnownFields, Record, describe_money
from escrowctl.contract.redaction import hide_in_text
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, bad_value, command
from escrowctl.files import NotRegularError, TooLargeError, read_regular
from escrowctl.journal.model import State, parse_entry_name
from escrowctl.output.view import View
from escrowctl.runtime import describe_age
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteOptions, WriteRequest

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm
    from escrowctl.writes.result import WriteResult

_MAX_TEXT_CHARS = 500
_MAX_KEY_CHARS = 255
_MAX_DATA_BYTES = 16 * 1024 * 1024
_ID_PLACEHOLDER = "(created when sent)"


def check_text(value: str | None, *, name: str) -> str | None:
    """Return `value` unchanged. Raises `BAD_VALUE` if it is text other than one line of 1 to 500 characters."""
    if value is not None and not (fold_reference(value) and value.isprintable() and len(value) <= _MAX_TEXT_CHARS):
        raise bad_value(f"{name} must be one line of 1 to {_MAX_TEXT_CHARS} printable characters.")
    return value


def check_options(
    idempotency_key: str | None,
    reason: str | None,
    duplicates: list[str] | None,
    *,
    reference: str | None = None,
    already_sent: bool = False,
) -> WriteOptions:
    """Return the checked options of a write. `duplicates` are the entry names after `--allow-duplicate`.

    Raises `ErrorCode.BAD_VALUE` for an invalid option, such as an idempotency key that does not fit in a header.
    """
    if idempotency_key is not None and not re.fullmatch(rf"[!-~]{{1,{_MAX_KEY_CHARS}}}", idempotency_key, re.ASCII):
        raise bad_value(f"--idempotency-key must be 1 to {_MAX_KEY_CHARS} visible ASCII characters without spaces.")
    if already_sent and reason is None:
        raise bad_value('--already-sent needs --reason TEXT, such as --reason "lost in the failover".')
    return WriteOptions(
        idempotency_key=idempotency_key,
        reference=check_text(reference, name="--reference"),
        reason=check_text(reason, name="--reason"),
        allowed_duplicates=tuple(parse_entry_name(name) for name in duplicates or []),
        already_sent=already_sent,
    )


def read_data(value: str | None, stdin: TextIO) -> dict[str, JsonValue]:
    """Return the JSON object in `--data`. `value` is JSON text, `@FILE`, or `@-` for `stdin`; None gives `{}`.

    Raises `BAD_VALUE` for unreadable input and for JSON other than an object. The JSON rules are those for replies.
    """
    if value is None:
        return {}
    is_file = value.startswith("@")
    body = read_input(value[1:], stdin, prefix="--data @") if is_file else value.encode("utf-8", "surrogateescape")
    reply = read_reply(body)
    if isinstance(reply, UnreadableReply):
        defect, position = reply.defect.value, ""
        if reply.defect in (Defect.NOT_JSON, Defect.CUT_SHORT):
            try:
                json.loads(body.decode(), parse_int=str, parse_float=str)
            except json.JSONDecodeError as error:
                # Only the position: the message must not quote the JSON.
                position = f" at line {error.lineno}, column {error.colno}"
        raise bad_value(f'--data {defect}{position}: give a JSON object, such as \'{{"note": "x"}}\'.')
    if not isinstance(reply.value, dict):
        raise bad_value('--data is JSON, but not an object: give an object, such as \'{"note": "x"}\'.')
    return reply.value


def read_input(path: str, stdin: TextIO, *, prefix: str = "") -> bytes:
    """Return the bytes of a file, or of `stdin` if `path` is `-`. Messages show `prefix` before the path.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` if the file or `stdin` is unreadable or larger than 16 MiB.
    """
    if path == "-":
        content: str | bytes = getattr(stdin, "buffer", stdin).read(_MAX_DATA_BYTES + 1)
        body = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        if len(body) > _MAX_DATA_BYTES:
            raise bad_value(f"{prefix}-: standard input is larger than {_MAX_DATA_BYTES} bytes.")
        return body
    try:
        return read_regular(Path(path), limit=_MAX_DATA_BYTES)[0]
    except NotRegularError as error:
        mark = prefix[-1:]
        raise bad_value(f"{prefix}{path} {error.strerror}: write {mark}FILE, or {mark}- for standard input.") from error
    except TooLargeError as error:
        raise bad_value(f"{prefix}{path} {error.strerror}.") from error
    except OSError as error:
        raise bad_value(f"{prefix}{path}: {error.strerror or error}.") from error


def check_currency(session: Session, text: str, *, name: str = "--currency") -> str:
    """Return the currency code in `text`. Raises `BAD_VALUE` if neither ISO 4217 nor the profile lists the code."""
    # Only a text that a profile may list needs the settings of the service.
    listed = session.service.currencies if may_be_profile_currency(text) else frozenset()
    try:
        return parse_currency(text, listed=listed, name=name)
    except EscrowctlError as error:
        if session.service.sandbox:
            error.hints = ()
        elif error.hints and session.service.profile is None:
            error.hints = (command("auth login", f"to let escrowctl accept {text}, first create a profile", bare=True),)
        raise


def show_dry_run(session: Session, request: WriteRequest) -> None:
    """Make the local checks of a write and show its request. Send nothing. Raises the error of a failed check."""
    # A request does not have the fields of a record, so --fields must not select among them.
    session.show(view_dry_run(session, request)._replace(named={}))


def view_dry_run(session: Session, request: WriteRequest) -> View:
    """Return the view of a dry run: the request, or the done entry that it repeats. Raises the error of a check."""
    from escrowctl.writes.result import write_failure  # noqa: PLC0415 - help does not pay for HTTP

    if request.options.already_sent:
        raise bad_value("--already-sent sends nothing in any case: leave --dry-run out.")
    earlier = session.writer.rehearse(request)
    if earlier is not None:
        if earlier.sent_entry.state is not State.DONE:
            raise write_failure(session.service, earlier)
        note_replayed(session, earlier)
        name = earlier.sent_entry.name
        return View({"dry_run": True, "replays": name}, None, {"replays": name}, named={"id": request.resource_id})
    if session.service.caps and request.money is None and request.is_capped:
        session.console.note("caps", "caps were not checked: a dry run does not read the amount from the service")
    condition = ", if read_only were off" if session.service.read_only else ""
    session.console.note(
        "dry_run",
        f"dry run: every check on this machine passed, and nothing was sent. This request would be sent{condition}",
    )
    outgoing = session.writer.preview(request, placeholder=_ID_PLACEHOLDER)
    headers: dict[str, JsonValue] = dict((STARRED_KEY_HEADER, *redact_headers(outgoing.headers)))
    body = hide_in_text(outgoing.body.decode()) if outgoing.body is not None else None
    target: dict[str, JsonValue] = {"method": outgoing.method, "url": outgoing.url}
    document: JsonValue = {"dry_run": True, **target, "headers": headers, "body": body}
    shown: JsonValue = {**target, **headers, "body": body or ""}
    return View(document, None, shown, named={"id": request.resource_id, "url": outgoing.url})


def make_confirm(session: Session, operation: Operation, body: str | None, *, yes: bool) -> "Confirm":
    """Return a function that asks the operator to confirm a write to a record.

    The operator types the id of the record, or the amount for a release at a live service. The question shows
    `body`, the request body. The function returns True after it has asked. If `yes`, it returns False at once.
    """
    verb, kind = operation.verb, kind_of(operation.name)

    def confirm(resource_id: str, found: KnownFields | None) -> bool:
        if yes:
            return False
        service, amount = session.service, describe_money(found) or "an unknown amount"
        answer = resource_id
        if kind.types_amount and service.live and found is not None and found.amount is not None:
            answer = str(found.amount)
        goal = f"{verb} {amount}" if kind.types_amount else f"send the {verb}"
        status = (found.status if found else None) or "unknown"
        target = [f"  id {resource_id}   amount {describe_money(found) or 'unknown'}   status {status}"]
        if not service.sandbox:
            target.append(f"  profile {service.name}   host {service.origin}")
        session.prompt.confirm(
            [*target, *([f"  PUT {body}"] if body is not None else []), f"{kind.warning} To {goal}, type {answer}:"],
            answer,
            why=f"the {verb} of {resource_id} needs confirmation",
            declined=f"{resource_id} was not {operation.done}",
        )
        return True

    return confirm


def confirm_duplicate(session: Session, request: WriteRequest, *, yes: bool, dry_run: bool = False) -> None:
    """Ask before a create that repeats a recent identical create. For a test service or `yes`, only print a note.

    If `dry_run`, also print the note instead of asking. Raises EscrowctlError: `DECLINED` if the operator does not
    confirm; `CONFIRMATION_NEEDED` if escrowctl cannot ask and the create has no reference.
    """
    done = session.writer.find_recent_create(request)
    if done is None or done.number in request.options.allowed_duplicates:
        return
    when = describe_age(done.settled_at or done.sent_at, session.runtime.now())
    names = ", ".join(filter(None, (done.name, done.settlement.result_id)))
    repeated = f"an identical create ({done.intent.money}) was done {when} ({names})"
    has_reference, live = request.options.reference is not None, session.service.live
    if yes or not live or (dry_run if session.prompt.obstacle is None else has_reference):
        session.console.note("identical", repeated, important=live)
        return
    # Checks that refuse the create in any case come before the question.
    session.writer.find_known(request)
    session.prompt.confirm(
        [f"  {repeated}", "To create a second escrow, type yes:"],
        "yes",
        why=f"{repeated}; a second escrow needs confirmation",
        declined="no second escrow was created",
        hint="" if has_reference else "give each escrow its own --reference: then escrowctl can tell them apart",
    )


def show_created(session: Session, result: "WriteResult", view: View) -> None:
    """Show the view of a created record.

    Raises `ID_UNKNOWN` if `-q` needs an id and the reply has none, `CHECK_FAILED` if record and request differ.
    """
    entry = result.sent_entry
    intent, options, status = entry.intent, session.options, entry.settlement.http_status
    note_replayed(session, result)
    if view.id is None:
        hint = command(f"journal show {entry.name}", "to see the reply")
        message = f"the {intent.verb} succeeded ({status}), but escrowctl found no id in the reply. Do not repeat it."
        if options.quiet and (not options.fields or "id" in options.fields):
            raise EscrowctlError(ErrorCode.ID_UNKNOWN, message, hint=hint, outcome=Outcome.DONE, facts=entry.facts)
        session.console.note("id_not_found", message, hints=(hint,))
    session.show(view, done=f"{intent.past_participle} {view.id or entry.name} ({status})", facts=entry.facts)
    if result.failure is not None:
        raise result.failure


def record_of(result: "WriteResult") -> Record:
    """Return the record in a create's result. Every result has one: without a record, a create is unknown."""
    assert result.record is not None, "a create without a record is unknown"
    return result.record


def note_replayed(session: Session, result: "WriteResult") -> None:
    """Print a note if this command sent nothing because an earlier command used the same idempotency key."""
    if not result.replayed:
        return
    entry = result.sent_entry
    is_done = result.verified or entry.settlement.verified or not entry.intent.is_once_only
    how = entry.intent.past_participle if is_done else "accepted"
    is_reply_lost = entry.settlement.reply is None and result.record is not None
    no_reply = " The journal has no copy of the reply." if is_reply_lost else ""
    session.console.note(
        "replayed",
        f"{entry.name} already used this idempotency key ({how} at {entry.settled_at}). This command sent nothing."
        f"{no_reply}",
    )
