"""`escrowctl tx release`: release one escrow or several, each once."""

from typing import Annotated

import typer

from escrowctl import options
from escrowctl.commands import writing
from escrowctl.commands.read import read_ids
from escrowctl.commands.times import parse_duration
from escrowctl.commands.tx.once_only import OnceOnlyWrites
from escrowctl.config.advice import advise_proving_status
from escrowctl.contract.identifiers import refuse_repeated_ids
from escrowctl.contract.json import encode
from escrowctl.contract.money import parse_amount
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.errors import bad_value
from escrowctl.prompt import confirmation_needed
from escrowctl.session import Session, session_of
from escrowctl.writes.inspection import RecordOptions


def release(
    context: typer.Context,
    ids: options.IdsArgument = None,
    yes: options.YesOption = False,
    expect_amount: options.ExpectAmountOption = None,
    expect_currency: options.ExpectCurrencyOption = None,
    skip_released: Annotated[
        bool, typer.Option("--skip-released", help="Succeed if the escrow is already released.")
    ] = False,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Release even if the escrow cannot be read.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the service reports the release.")] = False,
    deadline: options.DeadlineOption = "10m",
    reason: options.ReasonOption = None,
    data: options.DataOption = None,
    idempotency_key: options.KeyOption = None,
    allow_duplicate: options.AllowDuplicateOption = None,
    already_sent: options.AlreadySentOption = False,
    dry_run: options.DryRunOption = False,
) -> None:
    """Release escrowed money for good. You type the id (live: the amount) first.

    \b
    Examples:
      escrowctl tx release tx_7K2M9QHD
      escrowctl tx release tx_7K2M9QHD --yes --expect-amount 100
    """
    session = session_of(context)
    resource_ids, several = read_ids(ids, session.runtime.stdin)
    if ids == ["-"] and not (yes or dry_run or already_sent):
        raise confirmation_needed("ids come from standard input, so escrowctl cannot ask for confirmation")
    refuse_repeated_ids(resource_ids)
    if several and idempotency_key is not None:
        raise bad_value("--idempotency-key is for one release: give one id.")
    if already_sent and session.service.caps and None in (expect_amount, expect_currency):
        raise bad_value("a profile with caps has to count it: add --expect-amount and --expect-currency.")
    seconds = None
    if wait:
        seconds = parse_duration(deadline, name="--deadline").total_seconds()
        require_released_statuses(session, needed_by="--wait")
    record_options = RecordOptions(
        body=encode(writing.read_data(data, session.runtime.stdin)) if data is not None else None,
        expected_amount=parse_amount(expect_amount, name="--expect-amount") if expect_amount is not None else None,
        expected_currency=writing.check_currency(session, expect_currency, name="--expect-currency")
        if expect_currency is not None
        else None,
        allow_unreadable=allow_unreadable,
        skip_done=skip_released,
        wait=seconds,
    )
    write_options = writing.check_options(idempotency_key, reason, allow_duplicate, already_sent=already_sent)
    releases = OnceOnlyWrites(session, RELEASE_TRANSACTION, resource_ids, several, record_options, write_options)
    releases.carry_out(yes=yes or already_sent, dry_run=dry_run)


def require_released_statuses(session: Session, *, needed_by: str) -> frozenset[str]:
    """Return the case-folded statuses that prove a release. Raises `BAD_VALUE`, with `needed_by`, if none is set."""
    service = session.service
    if not service.released:
        in_profile = f" in profile {service.profile}" if service.profile else ""
        hint = advise_proving_status(service, RELEASE_TRANSACTION.done)
        raise bad_value(f"{needed_by} needs the setting status.released, which is not set{in_profile}.", hint=hint)
    return service.released
