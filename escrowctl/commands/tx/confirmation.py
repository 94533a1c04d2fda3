"""One confirmation for several once-only writes: a table of the records, their sums, one question."""

from decimal import Decimal
from typing import TYPE_CHECKING

from escrowctl.batch.check import Sum
from escrowctl.commands.sums import count_escrows, sum_lines
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session
from escrowctl.writes.inspection import require_unchanged
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import RecordOptions, WriteOptions, request_once_only

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm

_COLUMNS = ("id", "amount", "currency", "status")


class Inspected:
    """The records of several ids, each read once; or the error why an id cannot be written to."""

    def __init__(self) -> None:
        self.records: dict[str, Located | None] = {}
        """Id -> its record, for ids that can be written to; None if it could not be read and need not be."""
        self.refused: dict[str, EscrowctlError] = {}

    def require_unchanged(self, resource_id: str, found: Located | None) -> bool:
        """Confirm a write to a shown record. Raises `ErrorCode.EXPECTATION_FAILED` if the record has changed since."""
        if resource_id not in self.records:
            why = "it was not among those to confirm"
            raise not_sent(ErrorCode.EXPECTATION_FAILED, f"{resource_id} changed since escrowctl asked: {why}.")
        require_unchanged(resource_id, self.records[resource_id], found)
        # `found` was read after the question: it needs no further check.
        return False


def inspect_all(
    session: Session, operation: Operation, ids: list[str], how: RecordOptions, options: WriteOptions
) -> Inspected:
    """Read the record of each id. Raises EscrowctlError `JOURNAL_UNUSABLE`; other errors go into `refused`."""
    found = Inspected()
    for one in ids:
        try:
            found.records[one] = session.pipeline.inspect(request_once_only(operation, one, how.body, options), how)
        except EscrowctlError as error:
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                raise
            found.refused[one] = error
    return found


def confirm_all(session: Session, operation: Operation, inspected: Inspected) -> "Confirm":
    """Show the records and ask once: the operator types the number of writes.

    Raises EscrowctlError `ErrorCode.DECLINED` or `CONFIRMATION_NEEDED` if they are not confirmed.
    """
    count, service, verb = len(inspected.records), session.service, operation.verb
    if count:
        where = "" if service.sandbox else f"   profile {service.name}   host {service.origin}"
        sums: dict[str, Sum] = {}
        for found in inspected.records.values():
            is_known = found is not None and found.amount is not None and found.currency
            currency, amount = (found.currency or "", found.amount) if is_known and found else ("", None)
            sums[currency] = sums.get(currency, Sum()).plus(1, Decimal(amount or 0))
        rows = tuple(
            View(None, one, named={name: getattr(found, name, None) for name in _COLUMNS} | {"id": one})
            for one, found in inspected.records.items()
        )
        session.prompt.confirm(
            [
                *(f"  {line}" for line in session.console.table_lines(Listing(_COLUMNS, rows))),
                *(f"  not among them: {error.message}" for error in inspected.refused.values()),
                f"  {verb} {count_escrows(count)}{where}",
                *sum_lines(sums, count_escrows),
                f"{kind_of(operation.name).warning} To {verb} {'it' if count == 1 else 'them'}, type {count}:",
            ],
            str(count),
            why=f"the {verb} of {count_escrows(count)} needs confirmation",
            declined=f"nothing was {operation.done}",
        )
    return inspected.require_unchanged
