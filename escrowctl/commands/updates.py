"""Updates of an escrow (observed, not published): what the body may say, consent, and what is shown after."""

from dataclasses import replace
from typing import TYPE_CHECKING

from escrowctl.client.orders import Circumstances, Order, order_update
from escrowctl.client.records import Made
from escrowctl.commands.creations import note_replayed
from escrowctl.commands.preview import show_request
from escrowctl.commands.records import view_record
from escrowctl.commands.releases import describe_target
from escrowctl.contract.body import encode
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import Located
from escrowctl.contract.status import find_release
from escrowctl.errors import EscrowctlError, bad_value
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
    """Update one escrow and show its record.

    Raises EscrowctlError: exit 2 for a body that would release it, and whatever the client raises.
    """
    refuse_release(session, body)

    def order_for(found: Located | None) -> Order:
        return order_update(resource_id, body, circumstances, found=found, operation=operation)

    if dry_run:
        show_request(session, order_for(None))
        return
    session.service.refuse_key(*order_for(None).texts)
    session.console.note("observed", "PUT /transactions/:id was observed, not published: what it changes is not known")
    with session.signals.held():
        made = session.client.update(resource_id, order_for, _ask(session, body, yes=yes), unread=unread)
        note_replayed(session, made, verb="updated")
        session.show(_view(session, made, resource_id), done=f"{resource_id} was updated")


def refuse_release(session: Session, body: JsonValue) -> None:
    """Raise EscrowctlError (exit 2) for a body that holds a word which means released: it would be a release
    without its guards.
    """
    word = find_release(body, session.service.released)
    if word is not None:
        raise bad_value(f'--data says "{word}", which means released: use tx release.')


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


def _view(session: Session, made: Made, resource_id: str) -> View:
    """Return the record in the reply; where the reply was empty, as it reads now."""
    if made.record is not None:
        return view_record(session, made.record, resource_id)
    session.console.note("empty_reply", f"accepted ({made.entry.verdict.http_status}), with no reply body")
    try:
        return view_record(session, session.client.get_transaction(resource_id), resource_id)
    except EscrowctlError as error:
        session.console.note("not_read_back", f"{resource_id} could not be read back: {error.message}")
        return replace(View({"id": resource_id}, resource_id), fields=(("id", resource_id),))
