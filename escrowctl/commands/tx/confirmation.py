"""One confirmation for several releases: a table of the records, their sums, one question."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from escrowctl.commands.sums import add_up, count_escrows, sum_lines
from escrowctl.contract.money import money_of
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session
from escrowctl.writes.inspection import require_unchanged
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import RecordOptions, WriteRequest

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm

_COLUMNS = ("id", "amount", "currency", "status")


def confirm_all(
    session: Session, requests: Mapping[str, WriteRequest], how: RecordOptions
) -> "tuple[Confirm, Mapping[str, EscrowctlError]]":
    """Read each record once, show them, and ask: the operator types the number of releases.

    Return the function that confirms each release, and the refused ids. Raises EscrowctlError `JOURNAL_UNUSABLE`;
    `DECLINED` or `CONFIRMATION_NEEDED` if they are not confirmed.
    """
    records: dict[str, Located | None] = {}
    refused: dict[str, EscrowctlError] = {}
    for one, request in requests.items():
        try:
            records[one] = session.pipeline.inspect(request, how)
        except EscrowctlError as error:
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                raise
            refused[one] = error
    if records:
        _ask(session, records, refused)

    def confirm(resource_id: str, found: Located | None) -> bool:
        if resource_id not in records:
            why = "it was not among those to confirm"
            raise not_sent(ErrorCode.EXPECTATION_FAILED, f"{resource_id} changed since escrowctl asked: {why}.")
        require_unchanged(resource_id, records[resource_id], found)
        # `found` was read after the question: it needs no further check.
        return False

    # With skip_done, an id that is already released is no failure: the release itself reports it.
    is_skipped = how.skip_done
    failed = {one: error for one, error in refused.items() if not (is_skipped and error.code is ErrorCode.ALREADY_DONE)}
    return confirm, failed


def _ask(session: Session, records: Mapping[str, Located | None], refused: Mapping[str, EscrowctlError]) -> None:
    count = len(records)
    service, warning = session.service, kind_of(RELEASE_TRANSACTION.name).warning
    where = "" if service.sandbox else f"   profile {service.name}   host {service.origin}"
    rows = tuple(
        View(None, one, named={name: getattr(found, name, None) for name in _COLUMNS} | {"id": one})
        for one, found in records.items()
    )
    session.prompt.confirm(
        [
            *(f"  {line}" for line in session.console.table_lines(Listing(_COLUMNS, rows))),
            *(f"  not among them: {error.message}" for error in refused.values()),
            f"  release {count_escrows(count)}{where}",
            *sum_lines(add_up(map(money_of, records.values())), count_escrows),
            f"{warning} To release {'it' if count == 1 else 'them'}, type {count}:",
        ],
        str(count),
        why=f"the release of {count_escrows(count)} needs confirmation",
        declined="nothing was released",
    )
