"""What is shown of a thing that was created: its record, then what is not as it was sent."""

from escrowctl.client.records import Made, Record
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, command
from escrowctl.output.view import View
from escrowctl.session import Session


def show_made(session: Session, made: Made, view: View, *, verb: str) -> None:
    """Show the record of what was made; `verb` is what was done (`created`, `registered`).

    Raises EscrowctlError: `ID_UNKNOWN` where only the id was asked for and none was found, and
    `CHECK_FAILED` where the thing is not as it was sent.
    """
    entry = made.entry
    note_replayed(session, made, verb=verb)
    if made.earlier is not None:
        same = f"{made.earlier.name} was answered with {view.id} too: the service may have created one escrow, not two"
        session.console.note("same_id", same, word="warning", important=True)
    if view.id is None:
        _tell_missing_id(session, made, verb=verb)
    session.show(view, done=f"{verb} {view.id or entry.name} ({entry.settlement.http_status})")
    if made.failure is not None:
        raise made.failure


def record_of(made: Made) -> Record:
    """Return the record that a creation brought: it is not done without one."""
    assert made.record is not None, "a creation without a record is unknown"
    return made.record


def note_replayed(session: Session, made: Made, *, verb: str) -> None:
    """Say that an earlier command did it."""
    if made.replayed:
        entry = made.entry
        unread = " The service's reply is not known here." if entry.settlement.reply is None and made.record else ""
        session.console.note(
            "replayed", f"this was {verb} before, {entry.settled_at} ({entry.name}). Nothing was sent now.{unread}"
        )


def _tell_missing_id(session: Session, made: Made, *, verb: str) -> None:
    """Say that no id was found: loudly, or as an error (12) where only the id was asked for."""
    entry = made.entry
    if session.options.quiet:
        raise EscrowctlError(
            ErrorCode.ID_UNKNOWN,
            f"{verb} ({entry.settlement.http_status}), but -q cannot say which field is the id. Do not do it again.",
            hint=command(f"journal show {entry.name}", "the whole reply"),
            outcome=Outcome.DONE,
            facts=entry.facts,
        )
    record = record_of(made)
    whole = not session.options.fields and (session.options.raw or record.document == record.value)
    found = (
        "The reply has no body."
        if entry.settlement.reply is None
        else "This is the whole reply; no field in it is known to be the id."
        if whole
        else f"No field of the reply is known to be the id; all of it: {session.invocation} journal show {entry.name}."
    )
    session.console.note("id_not_found", f"{verb} ({entry.settlement.http_status}). {found} Do not do it again.")
