"""What the commands that write share: the dry run, the confirmation, and how a result is shown."""

from typing import TYPE_CHECKING

from escrowctl.client.http import redact_headers
from escrowctl.client.record import Record, describe_money
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, command
from escrowctl.output.view import View
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm
    from escrowctl.writes.requests import WriteRequest
    from escrowctl.writes.result import WriteResult

_MADE_WHEN_SENT = "(created when sent)"


def show_request(session: Session, request: "WriteRequest") -> None:
    """Show what a request would send, without the key: method, URL, headers, body. Nothing is sent or recorded."""
    outgoing = session.writer.preview(request, placeholder=_MADE_WHEN_SENT)
    headers = redact_headers(outgoing.headers)
    body = outgoing.body.decode() if outgoing.body is not None else None
    document: JsonValue = {
        "dry_run": True,
        "method": outgoing.method,
        "url": outgoing.url,
        "headers": dict(headers),
        "body": body,
    }
    fields = (("method", outgoing.method), ("url", outgoing.url), *headers, ("body", body or ""))
    session.console.note("dry_run", "dry run: this is what would be sent. Nothing was sent.")
    session.show(View(document=document, id=None, fields=fields))


def ask_on_record(session: Session, operation: Operation, body: str | None, *, yes: bool) -> "Confirm":
    """Return what asks for confirmation of a write on a record: its id is typed, or on a live service its amount.

    `body` is what will be sent, and is shown.
    """
    verb, kind = operation.verb, kind_of(operation.name)

    def confirm(resource_id: str, found: Located | None) -> bool:
        if yes:
            return False
        service, amount = session.service, describe_money(found) or "unknown"
        word = resource_id
        if kind.types_amount and service.live and found is not None and found.amount is not None:
            word = str(found.amount)
        what = "amount" if word != resource_id else "id"
        goal = f"{verb} {amount}" if kind.types_amount else "send it"
        session.dialogue.confirm(
            [
                _describe_target(session, resource_id, found),
                *([f"  PUT {body}"] if body is not None else []),
                f"{kind.warning} Type the {what} to {goal}: {word}",
            ],
            word,
            why=f"the {verb} of {resource_id} needs confirmation",
            declined=f"{resource_id} was not {kind.done}",
        )
        return True

    return confirm


def show_created(session: Session, result: "WriteResult", view: View) -> None:
    """Show the record of what was created.

    Raises EscrowctlError: `ID_UNKNOWN` where only the id was asked for and none was found, and
    `CHECK_FAILED` where the record differs from what was sent.
    """
    entry = result.sent
    done, status = kind_of(entry.intent.operation).done, entry.verdict.http_status
    note_replayed(session, result)
    if result.earlier is not None:
        same = f"{result.earlier.name} also got the id {view.id}: the service may have created one escrow, not two"
        session.console.note("same_id", same, word="warning", important=True)
    if view.id is None:
        _note_missing_id(session, result, done)
    session.show(view, done=f"{done} {view.id or entry.name} ({status})")
    if result.failure is not None:
        raise result.failure


def record_of(result: "WriteResult") -> Record:
    """Return the record that a create brought: it is not done without one."""
    assert result.record is not None, "a create without a record is unknown"
    return result.record


def note_replayed(session: Session, result: "WriteResult") -> None:
    """Report that an earlier command did it."""
    if not result.replayed:
        return
    entry = result.sent
    done = kind_of(entry.intent.operation).done
    is_reply_lost = entry.verdict.reply is None and result.record is not None
    unread = " The service's reply is not stored." if is_reply_lost else ""
    session.console.note(
        "replayed", f"this was already {done} at {entry.settled_at} ({entry.name}). Nothing was sent now.{unread}"
    )


def _describe_target(session: Session, resource_id: str, found: Located | None) -> str:
    """Return the line that shows what is about to be written to."""
    service = session.service
    amount = describe_money(found) or "unknown"
    line = f"  id {resource_id}   amount {amount}   status {(found.status if found else None) or 'unknown'}"
    return line if service.sandbox else f"{line}   profile {service.name}   host {service.origin}"


def _note_missing_id(session: Session, result: "WriteResult", done: str) -> None:
    """Report that no id was found; where only the id was asked for, raise `ErrorCode.ID_UNKNOWN`."""
    entry, record = result.sent, record_of(result)
    status = entry.verdict.http_status
    if session.options.quiet:
        raise EscrowctlError(
            ErrorCode.ID_UNKNOWN,
            f"{done} ({status}), but -q cannot print the id: no field of the reply is known to be the id. "
            "Do not do it again.",
            hint=command(f"journal show {entry.name}", "the complete reply"),
            outcome=Outcome.DONE,
            facts=entry.facts,
        )
    if entry.verdict.reply is None:
        found = "The reply has no body."
    elif not session.options.fields and (session.options.raw or record.document == record.value):
        found = "This is the complete reply; no field in it is known to be the id."
    else:
        found = (
            "No field of the reply is known to be the id; the complete reply: "
            f"{session.invocation} journal show {entry.name}."
        )
    session.console.note("id_not_found", f"{done} ({status}). {found} Do not do it again.")
