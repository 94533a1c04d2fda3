"""`escrowctl tx`: create, read and release escrow transactions."""

from typing import Annotated

import typer

from escrowctl.client.orders import Terms, order_creation, order_release
from escrowctl.commands.arguments import check_circumstances, check_currency, parse_duration, read_data, read_ids
from escrowctl.commands.creations import record_of, show_made
from escrowctl.commands.preview import show_request
from escrowctl.commands.records import show_by_id, show_list, view_record
from escrowctl.commands.releases import ask_release, release_all
from escrowctl.commands.updates import update as update_transaction
from escrowctl.contract.body import encode
from escrowctl.contract.identifiers import parse_id, refuse_confusable
from escrowctl.contract.money import check_minor_digits, parse_amount
from escrowctl.contract.operations import UPDATE_TRANSACTION
from escrowctl.dialogue import confirmation_needed
from escrowctl.errors import bad_value
from escrowctl.options import DataOption, DespiteOption, DryRunOption, KeyOption, ReasonOption, YesOption
from escrowctl.session import Session, session_of

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
    dry_run: DryRunOption = False,
) -> None:
    """Create an escrow.

    It is sent once. When no answer comes, its outcome is unknown (exit 12), and an equal create is
    refused until that is settled.

    \b
    Example:
      escrowctl tx create --amount 99.95 --currency EUR --reference order-8841
    """
    session = session_of(context)
    money = check_minor_digits(parse_amount(amount), check_currency(session, currency))
    added = read_data(data, session.surroundings.stdin)
    circumstances = check_circumstances(idempotency_key, reason, despite, reference=reference)
    order = order_creation(money, session.service, added, circumstances)
    if dry_run:
        show_request(session, order)
        return
    with session.signals.held():
        made = session.client.make(order)
        view = view_record(session, record_of(made))
        session.remember("transaction", (view.id,))
        show_made(session, made, view, verb="created")
        if view.id is not None and session.service.sandbox:
            session.next_step(f"tx release {view.id}")


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
    yes: YesOption = False,
    expect_amount: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Refuse unless the escrow holds this amount.")
    ] = None,
    expect_currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Refuse unless it is in this currency.")
    ] = None,
    ok_if_released: Annotated[
        bool, typer.Option("--skip-released", help="Succeed where it is released already.")
    ] = False,
    unread: Annotated[
        bool, typer.Option("--allow-unreadable", help="Release although its record cannot be read.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it reads as released.")] = False,
    deadline: Annotated[str, typer.Option(metavar="TIME", help="How long --wait waits: 90s, 10m, 2h.")] = "10m",
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,
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
        raise confirmation_needed(
            "a release needs a confirmation, and ids from standard input leave nobody to ask", "--yes"
        )
    refuse_confusable(wanted)
    if several and idempotency_key is not None:
        raise bad_value("--idempotency-key is for one release: give one id.")
    terms = Terms(
        body=encode(read_data(data, session.surroundings.stdin)) if data is not None else None,
        expected_amount=parse_amount(expect_amount, name="--expect-amount") if expect_amount is not None else None,
        expected_currency=_expected_currency(session, expect_currency),
        unread=unread,
        if_released=ok_if_released,
        wait=_check_wait(session, parse_duration(deadline, name="--deadline")) if wait else None,
    )
    circumstances = check_circumstances(idempotency_key, reason, despite)
    if dry_run:
        for one in wanted:
            show_request(session, order_release(one, terms, circumstances))
        return
    session.service.refuse_key(*wanted)
    prepared = session.client.prepare_release(terms, circumstances, ask_release(session, terms.body, yes=yes))
    release_all(session, prepared, wanted, several=several)


def update(
    context: typer.Context,
    transaction_id: Annotated[str, typer.Argument(metavar="ID", help="A transaction id.")],
    data: Annotated[str, typer.Option(metavar="JSON", help="The JSON object to send; @FILE or @- reads one.")],
    yes: YesOption = False,
    unread: Annotated[
        bool, typer.Option("--allow-unreadable", help="Update although its record cannot be read.")
    ] = False,
    reason: ReasonOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Update an escrow (observed, not published).

    The call was seen in activity listings, answered with 400; its contract is not shown. The record
    is shown and its id is to be typed; scripts say --yes.

    \b
    Example:
      escrowctl tx update tx_7K2M9QHD --data '{"note": "checked"}'
    """
    session = session_of(context)
    resource_id = parse_id(transaction_id)
    update_transaction(
        session,
        resource_id,
        read_data(data, session.surroundings.stdin),
        check_circumstances(idempotency_key, reason, despite),
        operation=UPDATE_TRANSACTION,
        yes=yes,
        unread=unread,
        dry_run=dry_run,
    )


def _check_wait(session: Session, seconds: float) -> float:
    if not session.service.released:
        raise bad_value(
            f"--wait needs to know which status words mean released, and {session.service.name} names none.",
            hint='in the profile: status.released = ["released"]',
        )
    return seconds


def _expected_currency(session: Session, text: str | None) -> str | None:
    return check_currency(session, text, name="--expect-currency") if text is not None else None
