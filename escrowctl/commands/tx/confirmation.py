"""One confirmation for several releases: a table of the records, their sums, one question."""

from collections.abc import Mapping

from escrowctl.commands.sums import add_up, describe_escrow_count, format_sums
from escrowctl.contract.money import find_money
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session
from escrowctl.writes.inspection import Confirm, RecordOptions, require_unchanged
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteRequest

_COLUMNS = ("id", "amount", "currency", "status")


def confirm_all(
    session: Session, requests: Mapping[str, WriteRequest], options: RecordOptions
) -> "tuple[Confirm, Mapping[str, EscrowctlError]]":
    """Read the escrow of each request, show all escrows, and ask one question for all releases.

    `requests`: id -> request. Return a function that checks before each release that the escrow is still as shown,
    and the errors of the refused ids. Raises `DECLINED`, `CONFIRMATION_NEEDED` or `JOURNAL_UNUSABLE`.
    """
    records: dict[str, KnownFields | None] = {}
    refused: dict[str, EscrowctlError] = {}
    for requested_id, request in requests.items():
        try:
            records[requested_id] = session.pipeline.inspect(request, options)
        except EscrowctlError as error:
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                raise
            refused[requested_id] = error
    if records:
        count, service = len(records), session.service
        target = "" if service.sandbox else f"   profile {service.name}   host {service.origin}"
        rows = tuple(
            View(None, one, named={name: getattr(found, name, None) for name in _COLUMNS} | {"id": one})
            for one, found in records.items()
        )
        warning = kind_of(RELEASE_TRANSACTION.name).warning
        session.prompt.confirm(
            [
                *(f"  {line}" for line in session.console.render_table_lines(Listing(_COLUMNS, rows))),
                *(f"  left out: {error.message}" for error in refused.values()),
                f"  release {describe_escrow_count(count)}{target}",
                *format_sums(add_up(map(find_money, records.values())), describe_escrow_count),
                f"{warning} To release {'it' if count == 1 else 'them'}, type {count}:",
            ],
            str(count),
            why=f"the release of {describe_escrow_count(count)} needs confirmation",
            declined="nothing was released",
        )

    def confirm(resource_id: str, found: KnownFields | None) -> bool:
        if resource_id not in records:
            message = f"{resource_id} changed after the question: it was not among the escrows to confirm."
            raise not_sent(ErrorCode.EXPECTATION_FAILED, message)
        require_unchanged(resource_id, records[resource_id], found)
        # False: `found` was read after the question, so it need not be read again.
        return False

    # With skip_done, an escrow that is already released is no failure: the release itself reports it.
    skipped = ErrorCode.ALREADY_DONE if options.skip_done else None
    return confirm, {one: error for one, error in refused.items() if error.code is not skipped}
