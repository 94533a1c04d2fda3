"""Releases: how consent is asked for, and what is said of one that was accepted."""

from typing import TYPE_CHECKING

from escrowctl.client.exchange import SUCCESS
from escrowctl.client.records import Released, describe_money, set_pending
from escrowctl.commands.several import run_several
from escrowctl.contract.number import JsonValue, Number
from escrowctl.contract.record import Located
from escrowctl.output.view import View, flatten
from escrowctl.session import Session

if TYPE_CHECKING:
    from escrowctl.client.inspection import Confirm
    from escrowctl.client.release import Release


def release_all(session: Session, prepared: "Release", ids: list[str], *, several: bool) -> None:
    """Release each id and show what became of it."""
    if several:
        run_several(session, ids, lambda one: _release_one(session, prepared, one), done="was accepted")
        return
    with session.signals.held():
        released = prepared.release(ids[0])
        _note_release(session, released)
        session.show(_view(released), done=f"{released.id} was accepted for release ({released.http_status})")
        session.remember("transaction", ids)


def ask_release(session: Session, body: str | None, *, yes: bool) -> "Confirm":
    """Return what asks for consent: the amount is to be typed on a live service, else the id.

    `body` is what will be sent, and is shown.
    """

    def confirm(resource_id: str, found: Located | None) -> bool:
        if yes:
            return False
        service = session.service
        amount = describe_money(found) or "unknown"
        word = str(found.amount) if service.live and found and found.amount else resource_id
        what = "amount" if word != resource_id else "id"
        session.dialogue.confirm(
            [
                describe_target(session, resource_id, found),
                *([f"  PUT {body}"] if body is not None else []),
                f"A release cannot be undone. Type the {what} to release {amount}: {word}",
            ],
            word,
            why=f"releasing {resource_id} needs a confirmation",
            declined=f"{resource_id} was not released",
        )
        return True

    return confirm


def describe_target(session: Session, resource_id: str, found: Located | None) -> str:
    """Return the line that shows what is about to be written to."""
    service = session.service
    amount = describe_money(found) or "unknown"
    line = f"  id {resource_id}   amount {amount}   status {(found.status if found else None) or 'unknown'}"
    return line if service.sandbox else f"{line}   profile {service.name}   host {service.origin}"


def _release_one(session: Session, prepared: "Release", resource_id: str) -> View:
    released = prepared.release(resource_id)
    _note_release(session, released)
    return _view(released, outcome="done")


def _view(released: Released, *, outcome: str | None = None) -> View:
    document: dict[str, JsonValue] = {
        "id": released.id,
        "http_status": Number(str(released.http_status)) if released.http_status is not None else None,
        "reply": released.reply,
        "status_before": released.status_before,
        "status_after": released.status_after,
        "verified": released.verified,
    }
    if outcome is not None:
        document = {"id": released.id, "outcome": outcome, **document}
    before, after = released.status_before or "?", released.status_after or "?"
    return View(
        document=document,
        id=released.id,
        fields=flatten(document),
        line=f"{released.id}   {before} -> {after}   {_how_verified(released)}",
        named={
            "id": released.id,
            "status_before": released.status_before,
            "status_after": released.status_after,
            "verified": released.verified,
        },
        record=document,
        outcome=outcome,
    )


def _how_verified(released: Released) -> str:
    if released.verified is True:
        return "confirmed by reading it back"
    if released.verified is False:
        return "accepted, not yet released"
    return (
        "accepted; could not be read back" if released.status_after is None else "accepted, not confirmed as released"
    )


def _note_release(session: Session, released: Released) -> None:
    entry = released.entry
    if entry is None:
        how = (
            "was released already"
            if released.verified
            else "had a release accepted before; it is not confirmed as released"
        )
        session.console.note("already_released", f"{released.id} {how}. Nothing was sent now.")
    elif released.replayed:
        session.console.note(
            "replayed", f"this was released before, {entry.settled_at} ({entry.name}). Nothing was sent now."
        )
    elif released.http_status not in SUCCESS:
        how = f"the service answered {released.http_status} ({entry.name})"
        session.console.note("released_despite_refusal", f"{how}; {released.id} reads as {released.status_after} now")
    elif released.verified is False:
        session.console.note(
            "not_yet_released",
            f"accepted, not yet released: the status is {released.status_after}; --wait waits for it",
        )
    elif released.verified is None:
        session.console.note(
            "not_confirmed", f"accepted, but not confirmed as released: {_why_open(session, released)}"
        )


def _why_open(session: Session, released: Released) -> str:
    """Return why it cannot be told whether an escrow is released, and how to say what its status means."""
    status = released.status_after
    if status is None:
        return "its record could not be read back"
    if status == released.status_before:
        return f"the status is still {status}"
    why = f"the status is now {status}"
    if released.status_before is None or session.service.profile is None or session.service.is_pending(status):
        return why
    return f'{why}; if that means "on its way": {session.invocation} {set_pending(status)}'
