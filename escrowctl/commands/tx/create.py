"""`escrowctl tx create`."""

from typing import Annotated

import typer

from escrowctl import options
from escrowctl.commands import writing
from escrowctl.contract.money import make_money, parse_amount
from escrowctl.output.view import view_record
from escrowctl.session import session_of
from escrowctl.writes.requests import make_create_request


def create(
    context: typer.Context,
    amount: Annotated[str, typer.Option(metavar="AMOUNT", help="The amount, sent exactly as typed.")],
    currency: Annotated[str, typer.Option(metavar="CODE", help="An ISO 4217 code, such as USD.")],
    reference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Your own unique name for it, stored in the journal.")
    ] = None,
    reason: options.ReasonOption = None,
    data: options.DataOption = None,
    idempotency_key: options.KeyOption = None,
    allow_duplicate: options.AllowDuplicateOption = None,
    already_sent: options.AlreadySentOption = False,
    yes: options.YesOption = False,
    dry_run: options.DryRunOption = False,
) -> None:
    """Create an escrow.

    The request is sent once. If no reply comes, the outcome is unknown. Identical creates are refused
    until you resolve the unknown one. On a live service, escrowctl asks before it repeats a create of
    the last 15 minutes.

    \b
    Examples:
      escrowctl tx create --amount 99.95 --currency EUR --reference order-8841
      escrowctl --sandbox tx create --amount 100 --currency USD --dry-run
    """
    session = session_of(context)
    number = parse_amount(amount, name="--amount")
    money = make_money(number, writing.check_currency(session, currency), name="--amount")
    extra_fields = writing.read_data(data, session.runtime.stdin)
    write_options = writing.check_options(
        idempotency_key, reason, allow_duplicate, reference=reference, already_sent=already_sent
    )
    request = make_create_request(money, session.service, extra_fields, write_options)
    if dry_run:
        writing.confirm_duplicate(session, request, yes=yes, dry_run=True)
        writing.show_dry_run(session, request)
        return
    with session.signals.held():
        result = session.pipeline.run(request, lambda: writing.confirm_duplicate(session, request, yes=yes))
        view = view_record(writing.record_of(result), raw=session.options.raw)
        session.remember_ids("transaction", {view.id: view.named["status"]})
        writing.show_created(session, result, view)
        if view.id is not None and session.service.sandbox:
            session.console.note("next", f"{session.invocation} tx release {view.id}", label="next")
