"""Shared by the commands that write: typed values, the dry run, the confirmation, and the result."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from escrowctl.client.http import KEY_SHOWN, redact_headers
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import Broken, Defect, JsonValue, read_reply
from escrowctl.contract.money import may_be_listed, parse_currency
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import Located, Record, describe_money
from escrowctl.contract.redaction import hide_in_text
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, bad_value, command
from escrowctl.files import NotRegularError, TooLargeError, read_regular
from escrowctl.journal.model import State, parse_entry_name
from escrowctl.output.view import View
from escrowctl.runtime import ago
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteOptions

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm
    from escrowctl.writes.requests import WriteRequest
    from escrowctl.writes.result import WriteResult

_MAX_TEXT = 500
_MAX_KEY = 255
_MAX_DATA = 16 * 1024 * 1024
_MADE_WHEN_SENT = "(created when sent)"


def check_text(value: str | None, *, name: str) -> str | None:
    """Return a text for the journal: one line of 1 to 500 characters."""
    if value is None:
        return None
    if not fold_reference(value) or not value.isprintable() or len(value) > _MAX_TEXT:
        raise bad_value(f"{name} must be one line of 1 to {_MAX_TEXT} printable characters.")
    return value


def check_options(
    idempotency_key: str | None, reason: str | None, duplicates: list[str] | None, *, reference: str | None = None
) -> WriteOptions:
    """Return the checked options of a write. `duplicates`: names of journal entries.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`, also for an idempotency key that does not fit in a header.
    """
    if idempotency_key is not None and not re.fullmatch(rf"[!-~]{{1,{_MAX_KEY}}}", idempotency_key, re.ASCII):
        raise bad_value(f"--idempotency-key must be 1 to {_MAX_KEY} visible ASCII characters without spaces.")
    return WriteOptions(
        idempotency_key=idempotency_key,
        reference=check_text(reference, name="--reference"),
        reason=check_text(reason, name="--reason"),
        allowed_duplicates=tuple(parse_entry_name(name) for name in duplicates or []),
    )


def read_data(value: str | None, stdin: TextIO) -> dict[str, JsonValue]:
    """Return the JSON object of `--data`: text, `@FILE`, or `@-` for `stdin`. It is parsed as strictly as a reply.
    Raises `BAD_VALUE` if it cannot be read or is no JSON object.
    """
    if value is None:
        return {}
    is_place = value.startswith("@")
    body = read_input(value[1:], stdin, before="--data @") if is_place else value.encode("utf-8", "surrogateescape")
    reply = read_reply(body)
    if isinstance(reply, Broken):
        at = _place(body, reply.defect)
        raise bad_value(f'--data {reply.defect.value}{at}: give a JSON object, such as \'{{"note": "x"}}\'.')
    if not isinstance(reply.value, dict):
        raise bad_value('--data is JSON, but not an object: give one, such as \'{"note": "x"}\'.')
    return reply.value


def read_input(place: str, stdin: TextIO, *, before: str = "") -> bytes:
    """Return the bytes of a file, or of `stdin` if `place` is `-`. `before`: the typed text in front, for messages.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` if it cannot be read, or is larger than 16 MiB.
    """
    if place == "-":
        buffer = getattr(stdin, "buffer", None)
        read = (
            stdin.read(_MAX_DATA + 1).encode("utf-8", "surrogateescape")
            if buffer is None
            else buffer.read(_MAX_DATA + 1)
        )
        if len(read) > _MAX_DATA:
            raise bad_value(f"{before}-: standard input is larger than {_MAX_DATA} bytes.")
        return read
    try:
        return read_regular(Path(place), limit=_MAX_DATA)[0]
    except NotRegularError as error:
        mark = before[-1:]
        advice = f"write {mark}FILE, or {mark}- for standard input"
        raise bad_value(f"{before}{place} {error.strerror}: {advice}.") from error
    except TooLargeError as error:
        raise bad_value(f"{before}{place} {error.strerror}.") from error
    except OSError as error:
        raise bad_value(f"{before}{place}: {error.strerror or error}.") from error


def _place(body: bytes, defect: Defect) -> str:
    """Return the position of the JSON error, such as ` at line 1, column 2`. No content: it may be secret."""
    if defect in (Defect.NOT_JSON, Defect.CUT_SHORT):
        try:
            json.loads(body.decode(), parse_int=str, parse_float=str)
        except json.JSONDecodeError as error:
            return f" at line {error.lineno}, column {error.colno}"
    return ""


def check_currency(session: Session, text: str, *, name: str = "--currency") -> str:
    """Return a currency code of ISO 4217 or of the profile, which is read only if it may list the code."""
    listed = session.service.currencies if may_be_listed(text) else frozenset()
    try:
        return parse_currency(text, listed=listed, name=name)
    except EscrowctlError as error:
        if session.service.sandbox:
            error.hints = ()
        elif error.hints and session.service.profile is None:
            error.hints = (command("auth login", f"to let escrowctl accept {text}, first create a profile", bare=True),)
        raise


def rehearse(session: Session, request: "WriteRequest") -> None:
    """Make all local checks of a write, and show its request; nothing is sent. Raises the error of a failed check."""
    # A request does not have the fields of a record, so --fields must not select among them.
    session.show(view_rehearsed(session, request)._replace(named={}))


def view_rehearsed(session: Session, request: "WriteRequest") -> View:
    """Return the view of a request, key hidden: method, URL, headers, body. Raises the error of a failed check."""
    from escrowctl.writes.result import write_failure  # noqa: PLC0415 - help does not pay for HTTP

    known = session.writer.rehearse(request)
    if known is not None:
        if known.sent.state is not State.DONE:
            raise write_failure(session.service, known)
        note_replayed(session, known)
        name = known.sent.name
        return View({"dry_run": True, "replays": name}, None, {"replays": name}, named={"id": request.resource_id})
    if session.service.caps and request.is_capped and request.money is None:
        session.console.note("caps", "caps were not checked: a dry run does not read the amount from the service")
    this = "Without read_only, this" if session.service.read_only else "This"
    message = f"dry run: every check on this machine passed. {this} would be sent; nothing was sent"
    session.console.note("dry_run", message)
    outgoing = session.writer.preview(request, placeholder=_MADE_WHEN_SENT)
    headers = (KEY_SHOWN, *redact_headers(outgoing.headers))
    body = hide_in_text(outgoing.body.decode()) if outgoing.body is not None else None
    document: JsonValue = {
        "dry_run": True,
        "method": outgoing.method,
        "url": outgoing.url,
        "headers": dict(headers),
        "body": body,
    }
    shown: JsonValue = {"method": outgoing.method, "url": outgoing.url, **dict(headers), "body": body or ""}
    return View(document, None, shown, named={"id": request.resource_id, "url": outgoing.url})


def ask_on_record(session: Session, operation: Operation, body: str | None, *, yes: bool) -> "Confirm":
    """Return a function that confirms a write to a record. The operator types its id, on a live service its amount.

    `body`: the request body, which the question shows.
    """
    verb, kind = operation.verb, kind_of(operation.name)

    def confirm(resource_id: str, found: Located | None) -> bool:
        if yes:
            return False
        service, amount = session.service, describe_money(found) or "an unknown amount"
        word = resource_id
        if kind.types_amount and service.live and found is not None and found.amount is not None:
            word = str(found.amount)
        goal = f"{verb} {amount}" if kind.types_amount else f"send the {verb}"
        status = (found.status if found else None) or "unknown"
        target = [f"  id {resource_id}   amount {describe_money(found) or 'unknown'}   status {status}"]
        if not service.sandbox:
            target.append(f"  profile {service.name}   host {service.origin}")
        session.prompt.confirm(
            [*target, *([f"  PUT {body}"] if body is not None else []), f"{kind.warning} To {goal}, type {word}:"],
            word,
            why=f"the {verb} of {resource_id} needs confirmation",
            declined=f"{resource_id} was not {operation.done}",
        )
        return True

    return confirm


def confirm_repetition(session: Session, request: "WriteRequest", *, yes: bool, rehearsed: bool = False) -> None:
    """Ask before an identical create is repeated within a short time. For a test service, only note it.

    Raises EscrowctlError `DECLINED`; `CONFIRMATION_NEEDED` if no question is possible and it has no reference.
    `rehearsed`: if a question is possible, note it instead.
    """
    done = session.writer.find_done_lately(request)
    if done is None or done.number in request.options.allowed_duplicates:
        return
    when = ago(done.settled_at or done.sent_at, session.runtime.now())
    names = ", ".join(filter(None, (done.name, done.settlement.result_id)))
    sentence = f"an identical create ({done.intent.money}) was done {when} ({names})"
    has_reference, live = request.options.reference is not None, session.service.live
    if yes or not live or (rehearsed if session.prompt.obstacle is None else has_reference):
        session.console.note("identical", sentence, important=live)
        return
    # Checks that refuse the create in any case come before the question.
    session.writer.find_known(request)
    session.prompt.confirm(
        [f"  {sentence}", "To create another one, type yes:"],
        "yes",
        why=f"{sentence}; another one needs confirmation",
        declined="no second escrow was created",
        hint="" if has_reference else "give each escrow its own --reference: then escrowctl knows which one is meant",
    )


def show_created(session: Session, result: "WriteResult", view: View) -> None:
    """Show the created record.

    Raises EscrowctlError: `ID_UNKNOWN` if `-q` needs the id and none was found,
    `CHECK_FAILED` if the record differs from the request.
    """
    entry = result.sent
    done, status = entry.intent.done, entry.settlement.http_status
    note_replayed(session, result)
    if view.id is None:
        _note_missing_id(session, result)
    session.show(view, done=f"{done} {view.id or entry.name} ({status})", facts=entry.facts)
    if result.failure is not None:
        raise result.failure


def record_of(result: "WriteResult") -> Record:
    """Return the record of a create, which a done create always has."""
    assert result.record is not None, "a create without a record is unknown"
    return result.record


def note_replayed(session: Session, result: "WriteResult") -> None:
    """Report that an earlier command did the write, or only got it accepted if it is once-only and not verified."""
    if not result.replayed:
        return
    entry = result.sent
    is_done = result.verified or entry.settlement.verified or not entry.intent.is_once_only
    how = entry.intent.done if is_done else "accepted"
    is_reply_lost = entry.settlement.reply is None and result.record is not None
    no_reply = " The journal has no copy of the reply." if is_reply_lost else ""
    session.console.note(
        "replayed",
        f"{entry.name} already used this idempotency key ({how} at {entry.settled_at}). This command sent nothing."
        f"{no_reply}",
    )


def _note_missing_id(session: Session, result: "WriteResult") -> None:
    """Report that no id was found. Raises `ErrorCode.ID_UNKNOWN` if `-q` needs it."""
    entry, options = result.sent, session.options
    status = entry.settlement.http_status
    if options.quiet and (not options.fields or "id" in options.fields):
        raise EscrowctlError(
            ErrorCode.ID_UNKNOWN,
            f"the {entry.intent.verb} succeeded ({status}), but escrowctl found no id in the reply, so -q has "
            "nothing to print. Do not repeat the command.",
            hint=command(f"journal show {entry.name}", "to see the reply"),
            outcome=Outcome.DONE,
            facts=entry.facts,
        )
    session.console.note(
        "id_not_found",
        f"the {entry.intent.verb} succeeded ({status}), but escrowctl found no id in the reply. Do not repeat it.",
        hints=(command(f"journal show {entry.name}", "to see the reply"),),
        invocation=session.invocation,
    )
