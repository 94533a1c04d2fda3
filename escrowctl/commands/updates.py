"""Updates of an escrow (observed, not published): what the body may say, consent, and what is shown after."""

from dataclasses import replace
from typing import TYPE_CHECKING

from escrowctl.client.orders import Circumstances, Order, order_update
from escrowctl.client.records import Updated
from escrowctl.commands.creations import note_replayed
from escrowctl.commands.preview import show_request
from escrowctl.commands.records import view_record
from escrowctl.commands.releases import describe_target
from escrowctl.contract.body import encode
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import Located
from escrowctl.output.view import View
from escrowctl.session import Session

if TYPE_CHECKING:
    from escrowctl.client.inspection import Confirm


def update(
    session: Session,
    resource_id: str,
    body: JsonValue,
    circumstances: Circumstances,
    *,
    operation: Operation,
    yes: bool,
    unread: bool,
    dry_run: bool,
) -> None:
    """Update one escrow, show its record, and warn where it reads as released since; raises what the client raises."""

    def order_for(found: Located | None) -> Order:
        return order_update(resource_id, body, circumstances, found=found, operation=operation)

    if dry_run:
        show_request(session, order_for(None))
        return
    session.service.refuse_key(*order_for(None).texts)
    session.console.note("observed", "PUT /transactions/:id was observed, not published: what it changes is not known")
    with session.signals.held():
        updated = session.client.update(resource_id, order_for, _ask(session, body, yes=yes), unread=unread)
        note_replayed(session, updated.made, verb="updated")
        _note_reading(session, updated, resource_id)
        session.show(_view(session, updated, resource_id), done=f"{resource_id} was updated")


def _note_reading(session: Session, updated: Updated, resource_id: str) -> None:
    """Warn of an escrow that reads as released and did not before; say where it could not be read back."""
    made, before = updated.made, updated.before
    if made.record is None:
        session.console.note("empty_reply", f"accepted ({made.entry.settlement.http_status}), with no reply body")
    if updated.unread is not None:
        session.console.note("not_read_back", f"{resource_id} could not be read back: {updated.unread}")
    record, released = updated.after or made.record, session.service.means_released
    status = record.located.status if record else None
    if not made.replayed and released(status) and not released(before.status if before else None):
        session.console.note(
            "now_released",
            f"{resource_id} now reads as {status}, and did not before this update. "
            f"Check it: {session.invocation} tx get {resource_id}",
            word="warning",
            important=True,
        )


def _ask(session: Session, body: JsonValue, *, yes: bool) -> "Confirm":
    def confirm(resource_id: str, found: Located | None) -> bool:
        if yes:
            return False
        session.dialogue.confirm(
            [
                describe_target(session, resource_id, found),
                f"  PUT {encode(body)}",
                f"What an update changes is not published. Type the id to send it: {resource_id}",
            ],
            resource_id,
            why=f"updating {resource_id} needs a confirmation",
            declined=f"{resource_id} was not updated",
        )
        return True

    return confirm


def _view(session: Session, updated: Updated, resource_id: str) -> View:
    """Return the record in the reply; where the reply was empty, as it reads now."""
    record = updated.made.record or updated.after
    if record is None:
        return replace(View({"id": resource_id}, resource_id), fields=(("id", resource_id),))
    return view_record(session, record, resource_id)
