"""`escrowctl tx release`."""

from typing import Annotated

import typer

from escrowctl.commands.tx.once_only import check_record_options, read_targets, write_each
from escrowctl.commands.writing import check_options
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.options import (
    AllowDuplicateOption,
    DataOption,
    DeadlineOption,
    DryRunOption,
    ExpectAmountOption,
    ExpectCurrencyOption,
    KeyOption,
    ReasonOption,
    YesOption,
)
from escrowctl.session import session_of


def release(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Transaction ids, or - for stdin.")] = None,
    yes: YesOption = False,
    expect_amount: ExpectAmountOption = None,
    expect_currency: ExpectCurrencyOption = None,
    skip_released: Annotated[bool, typer.Option("--skip-released", help="Succeed if it is released already.")] = False,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Release although it cannot be read.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the service reports it as released.")] = False,
    deadline: DeadlineOption = "10m",
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    allow_duplicate: AllowDuplicateOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Release the funds for good. You confirm by typing the id (live: the amount).

    \b
    Examples:
      escrowctl tx release tx_7K2M9QHD
      escrowctl tx release tx_7K2M9QHD --yes --expect-amount 100
    """
    session, operation = session_of(context), RELEASE_TRANSACTION
    wanted, several = read_targets(session, operation, ids, asks=not (yes or dry_run), key=idempotency_key)
    how = check_record_options(
        session,
        operation,
        data=data,
        amount=expect_amount,
        currency=expect_currency,
        allow_unreadable=allow_unreadable,
        skip_done=skip_released,
        deadline=deadline if wait else None,
    )
    options = check_options(idempotency_key, reason, allow_duplicate)
    write_each(session, operation, wanted, how, options, several=several, yes=yes, dry_run=dry_run)
