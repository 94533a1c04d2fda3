"""`escrowctl tx`: create, read and release escrow transactions."""

from typing import TYPE_CHECKING, Annotated

import typer

from escrowctl.client.orders import Created, NewEscrow, Released, Terms, order_creation, order_release
from escrowctl.commands.arguments import (
    check_currency,
    check_idempotency_key,
    check_text,
    parse_despite,
    parse_duration,
    read_data,
    read_ids,
)
from escrowctl.commands.preview import show_request
from escrowctl.commands.records import show_by_id, show_list, view_record
from escrowctl.commands.several import run_several
from escrowctl.contract.body import encode
from escrowctl.contract.money import check_minor_digits, parse_amount
from escrowctl.contract.number import JsonValue, Number
from escrowctl.errors import ErrorCode, EscrowctlError, Sending, bad_value
from escrowctl.options import DataOption, DespiteOption, DryRunOption, KeyOption, ReasonOption
from escrowctl.output.view import View, flatten
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from escrowctl.client.release import Confirm, Release
    from escrowctl.contract.record import Located

_Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Transaction ids, or - for stdin.")]


def create(
    context: typer.Context,
    amount: Annotated[str, typer.Option(metavar="AMOUNT", help="The amount, sent exactly as typed.")],
    currency: Annotated[str, typer.Option(metavar="CODE", help="An ISO 4217 code, such as USD.")],
    reference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Your own name for it, unique per service; kept locally.")
    ] = None,
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Create an escrow.

    It is sent once. When no answer comes, its outcome is unknown (exit 12), and an equal create is
    refused until that is settled.

    \b
    Example:
      escrowctl tx create --amount 99.95 --currency EUR --reference order-8841
    """
    session = session_of(context)
    escrow = NewEscrow(
        money=check_minor_digits(parse_amount(amount), check_currency(session, currency)),
        data=read_data(data),
        idempotency_key=check_idempotency_key(idempotency_key),
        reference=check_text(reference, name="--reference"),
        reason=check_text(reason, name="--reason"),
        despite=parse_despite(despite),
    )
    if dry_run:
        show_request(session, order_creation(escrow, session.service))
        return
    with session.signals.held():
        _show_created(session, session.client.create_transaction(escrow))


def get(context: typer.Context, ids: _Ids = None) -> None:
    """Show escrows as the service describes them.

    \b
    Example:
      escrowctl tx get tx_7K2M9QHD --json
    """
    session = session_of(context)
    show_by_id(session, ids, lambda one: session.client.get_transaction(one), noun="transaction")


def list_transactions(context: typer.Context) -> None:
    """List escrows, as the service lists them (observed, not published).

    The call was seen in activity listings; its contract is not shown, so nothing is asked of it: no
    filter, no paging. What comes may be one page of several.

    \b
    Example:
      escrowctl tx list --json
    """
    session = session_of(context)
    found = session.client.list_transactions()
    session.console.note("observed", "GET /transactions was observed, not published: this may be one page of several")
    show_list(session, found)


def release(
    context: typer.Context,
    ids: _Ids = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,  # noqa: FBT002 - a flag
    expect_amount: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Refuse unless the escrow holds this amount.")
    ] = None,
    expect_currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Refuse unless it is in this currency.")
    ] = None,
    ok_if_released: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--ok-if-released", help="Succeed where it is released already.")
    ] = False,
    unread: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--unread", help="Release although its record cannot be read.")
    ] = False,
    wait: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--wait", help="Wait until it reads as released.")
    ] = False,
    deadline: Annotated[str, typer.Option(metavar="TIME", help="How long --wait waits: 90s, 10m, 2h.")] = "10m",
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Release the funds of escrows. This cannot be undone.

    The record is shown and its id (on a live service its amount) is to be typed; scripts say --yes.
    The result is read back: accepted is not yet released.

    \b
    Example:
      escrowctl tx release tx_7K2M9QHD --yes --expect-amount 100 --expect-currency USD
    """
    session = session_of(context)
    wanted, several = read_ids(ids, session.surroundings.stdin)
    if ids == ["-"] and not (yes or dry_run):
        raise bad_value("ids from standard input leave nobody to ask: add --yes.")
    if several and idempotency_key is not None:
        raise bad_value("--idempotency-key is for one release: give one id.")
    terms = Terms(
        body=encode(read_data(data)) if data is not None else None,
        expected_amount=parse_amount(expect_amount, name="--expect-amount") if expect_amount is not None else None,
        expected_currency=_expected_currency(session, expect_currency),
        unread=unread,
        if_released=ok_if_released,
        wait=_check_wait(session, parse_duration(deadline, name="--deadline")) if wait else None,
        idempotency_key=check_idempotency_key(idempotency_key),
        reason=check_text(reason, name="--reason"),
        despite=parse_despite(despite),
    )
    if dry_run:
        for one in wanted:
            show_request(session, order_release(one, terms))
        return
    session.service.refuse_key(*wanted)
    prepared = session.client.prepare_release(terms, _confirmation(session, yes=yes))
    if several:
        run_several(
            session,
            wanted,
            lambda one: _release_one(session, prepared, one),
            failed="were not released",
            done="was released",
        )
        return
    with session.signals.held():
        released = prepared.release(wanted[0])
        _note_release(session, released)
        session.show(_release_view(released), done=_done(released))


def _check_wait(session: Session, seconds: float) -> float:
    if not session.service.released:
        raise bad_value(
            f"--wait needs to know which status words mean released, and {session.service.name} names none.",
            hint='in the profile: status.released = ["released"]',
        )
    return seconds


def _expected_currency(session: Session, text: str | None) -> str | None:
    return check_currency(session, text, name="--expect-currency") if text is not None else None


# Creating


def _show_created(session: Session, created: Created) -> None:
    located, entry = created.record.located, created.entry
    if created.replayed:
        session.console.note(
            "replayed", f"this was created before, {entry.settled_at} ({entry.name}). Nothing was sent now."
        )
    _note_difference(session, created)
    if located.id is None:
        _tell_missing_id(session, created)
    session.show(
        view_record(session, created.record, located.id),
        done=f"created {located.id or ''} ({entry.verdict.http_status})",
    )
    if located.id is not None and session.service.sandbox:
        session.next_step(f"tx release {located.id}")


def _tell_missing_id(session: Session, created: Created) -> None:
    """Say that no id was found: loudly, or as an error (12) where only the id was asked for."""
    entry = created.entry
    if session.options.quiet:
        raise EscrowctlError(
            ErrorCode.ID_UNKNOWN,
            f"created ({entry.verdict.http_status}), but -q cannot say which field is the id. Do not create it again.",
            hint=f"the whole reply: {session.invocation} journal show {entry.name}",
            sending=Sending.DONE,
            facts={"entry": entry.name, "idempotency_key": entry.intent.idempotency_key, "sent_at": entry.sent_at},
        )
    session.console.note(
        "id_not_found",
        f"created ({entry.verdict.http_status}). This is the whole reply; no field in it is known to be the id. "
        "Do not create it again.",
    )


def _note_difference(session: Session, created: Created) -> None:
    """Say loudly where the service's record holds another amount or currency than was sent."""
    sent, found = created.entry.intent.money, created.record.located
    if sent is None:
        return
    if found.amount is not None and found.amount != sent.amount:
        _warn(session, f"the service's record says amount {found.amount}, sent was {sent.amount}")
    if found.currency is not None and found.currency != sent.currency:
        _warn(session, f"the service's record says currency {found.currency}, sent was {sent.currency}")


def _warn(session: Session, message: str) -> None:
    session.console.note("differs", f"{message}. Look before anything is released.", word="warning", important=True)


# Releasing


def _confirmation(session: Session, *, yes: bool) -> "Confirm":
    def confirm(resource_id: str, found: "Located | None") -> bool:
        if yes:
            return False
        session.confirm_release(resource_id, found)
        return True

    return confirm


def _release_one(session: Session, prepared: "Release", resource_id: str) -> View:
    released = prepared.release(resource_id)
    _note_release(session, released)
    return _release_view(released, outcome="done")


def _release_view(released: Released, *, outcome: str | None = None) -> View:
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
    match released.verified:
        case True:
            return "verified by reading it back"
        case False:
            return "accepted, not verified"
        case None:
            return "accepted; could not be read back"


def _note_release(session: Session, released: Released) -> None:
    if released.entry is None:
        session.console.note("already_released", f"{released.id} was released already. Nothing was sent now.")
    elif released.replayed:
        entry = released.entry
        session.console.note(
            "replayed", f"this was released before, {entry.settled_at} ({entry.name}). Nothing was sent now."
        )
    elif released.verified is False:
        known = ", ".join(sorted(session.service.released))
        why = f'"{released.status_after}" is not among them: {known}' if known else "the profile names none"
        session.console.note("not_verified", f"accepted; whether it is released is not known ({why})")
    elif released.verified is None:
        session.console.note("not_verified", "accepted; its record could not be read back")


def _done(released: Released) -> str:
    return f"{released.id} was released ({released.http_status})"
