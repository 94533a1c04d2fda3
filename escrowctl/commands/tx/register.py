"""The register: the escrows that the writes in this journal created or released."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from escrowctl.commands.filters import Filters
from escrowctl.commands.rows import ESCROW_COLUMNS, make_cells, open_journal_to_read
from escrowctl.commands.sums import describe_escrow_count
from escrowctl.commands.times import parse_duration
from escrowctl.config.service import Service
from escrowctl.contract.json import Number, read_value
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, WRITES
from escrowctl.contract.record import has_other_id, make_record
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, command
from escrowctl.journal.model import POSSIBLE_STATES, Entry, Selection
from escrowctl.output.view import Listing, View
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import account_of

_UNKNOWN, _ACCEPTED = "unknown", "accepted"
_FAILURES_OF_EVERY_READ = (ErrorCode.NO_CONNECTION, ErrorCode.NOT_AUTHENTICATED)


class Escrow(NamedTuple):
    """An escrow. `first`: the entry of its create. `last`: that of its release, or of another write that it gets only
    once. If one is missing, they are equal.

    `status`: as last reported. It is "unknown" if a write's outcome or account is not known, and "accepted" if the
    last write was accepted but is not proven. `released_at`: the time when a proven release was recorded. `is_own`:
    the current account certainly sent its writes.
    """

    id: str | None
    first: Entry
    last: Entry
    status: str | None
    may_hold_money: bool
    amount: Number | None
    currency: str | None
    released_at: str | None
    is_own: bool


def list_own_entries(session: Session, selection: Selection) -> Iterator[Entry]:
    """Yield the selected entries of the chosen service, newest first, except those surely of another account."""
    names, account = session.service.journal_names, account_of(session.service)
    for entry in open_journal_to_read(session).select_all(selection):
        if entry.intent.goes_to_service(names) and not account.is_other(entry.intent.account):
            yield entry


def show_register(session: Session, filters: Filters, *, limit: int | None, refresh: bool, over: str | None) -> None:
    """Show the register's escrows that match the filters. `refresh`: first read each escrow at the service.

    `over`: show only escrows that may hold money for longer than this duration, and raise `ErrorCode.CHECK_FAILED`
    if there are any. Raises `ErrorCode.SOME_FAILED` if escrows could not be read.
    """
    now, age = session.runtime.now(), parse_duration(over, name="--over") if over is not None else None
    if age is not None:
        # Without a journal the check would find nothing and pass.
        session.journal_to_read.require_exists()
    found = [
        one
        for one in _list_escrows(session)
        if filters.reference in (None, one.first.intent.reference)
        and filters.is_recent(one.first.sent_at)
        and (age is None or (one.may_hold_money and now - datetime.fromisoformat(one.first.sent_at) > age))
    ]
    unread = 0
    if refresh:
        found, unread = _refresh_all(session, found)
    filters.note_left_out(session, [one.status for one in found])
    found = [one for one in found if filters.has_status(one.status) and (age is None or one.may_hold_money)]
    views = []
    for one in found[:limit]:
        row = make_cells(one.first) | {
            "id": one.id,
            "amount": one.amount,
            "currency": one.currency,
            "status": one.status,
            "created": one.first.shown_sent_at if one.first.intent.operation == CREATE_TRANSACTION.name else None,
            "released": one.released_at,
        }
        document = {name: row[name] for name in ESCROW_COLUMNS}
        views.append(View(document, one.id, named=row, record=document))
    session.console.show_listing(Listing(ESCROW_COLUMNS, tuple(views)))
    session.remember_ids("transaction", {view.id: view.named["status"] for view in views})
    if over is not None and found:
        hint = command("journal list --unknown", "to see the writes whose outcome is unknown")
        if not refresh:
            hint = command(f"tx list --local --refresh --over {over}", "to read each escrow at the service")
        message = f"{describe_escrow_count(len(found))} may hold money for longer than {over}."
        raise EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hint)
    if unread:
        message = f"{unread} of the escrows could not be read."
        raise EscrowctlError(ErrorCode.SOME_FAILED, message, effect=Effect.ONLY_READ)


def _refresh_all(session: Session, escrows: list[Escrow]) -> tuple[list[Escrow], int]:
    """Read each escrow. Return all escrows, and the number of unreadable ones, which are returned unchanged.

    An escrow without an id, or that is not surely of this account, is not read. Raises `NO_CONNECTION` or
    `NOT_AUTHENTICATED` at once, because every later read would fail.
    """
    found, unread = [], 0
    for escrow in escrows:
        if escrow.id is None or not escrow.is_own:
            found.append(escrow)
            continue
        try:
            located = session.reader.read_escrow(escrow.id).known
            if located.status is None:
                message = f"escrowctl finds no status in the record of {escrow.id}."
                raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, message)
        except EscrowctlError as error:
            if error.code in _FAILURES_OF_EVERY_READ:
                raise
            message = f"{error.message} The status shown for {escrow.id} is the last one that the journal has"
            session.console.note("not_read", message, label="warning", important=True)
            found.append(escrow)
            unread += 1
            continue
        may_hold = _may_hold_money(session.service, escrow.last, located.status)
        updated = escrow._replace(
            status=located.status,
            may_hold_money=may_hold,
            released_at=None if may_hold else escrow.released_at,
            amount=escrow.amount if located.amount is None else located.amount,
            currency=located.currency or escrow.currency,
        )
        found.append(updated)
    return found, unread


def _list_escrows(session: Session) -> list[Escrow]:
    """Return every escrow that a write in this journal created or released, or may have, newest first."""
    operations = (CREATE_TRANSACTION.name, *(one.name for one in WRITES if one.is_once_only))
    # The newest write of each operation, by escrow.
    writes: dict[str, dict[str, Entry]] = {}
    for entry in list_own_entries(session, Selection(states=POSSIBLE_STATES, operations=operations)):
        writes.setdefault(entry.record_id or f" {entry.name}", {}).setdefault(entry.intent.operation, entry)
    service, escrows = session.service, []
    account = account_of(service)
    for found in writes.values():
        last = next((entry for entry in found.values() if entry.intent.is_once_only), next(iter(found.values())))
        first = found.get(CREATE_TRANSACTION.name, last)
        # Entries of another API key may be about escrows of another account.
        is_own = account.is_same(first.intent.account) and account.is_same(last.intent.account)
        is_open = first.is_open or last.is_open or not is_own
        status = _UNKNOWN if is_open else _find_status(service, last)
        is_proven = last.intent.is_once_only and last.settlement.verified and not is_open
        is_released = is_proven and last.intent.operation == RELEASE_TRANSACTION.name
        money = first.intent.money
        escrow = Escrow(
            last.record_id,
            first,
            last,
            status,
            may_hold_money=not is_proven and _may_hold_money(service, last, status),
            amount=money.amount if money else None,
            currency=money.currency if money else None,
            released_at=last.settled_at if is_released else None,
            is_own=is_own,
        )
        escrows.append(escrow)
    return sorted(escrows, key=lambda one: one.first.number, reverse=True)


def _find_status(service: Service, last: Entry) -> str | None:
    """Return an escrow's status after its newest write, `last`: "released" if that is proven, else as in the reply."""
    if last.intent.is_once_only and last.settlement.verified:
        return last.intent.past_participle
    reply, noun = read_value(last.settlement.reply), CREATE_TRANSACTION.noun
    located = make_record(reply, pointers=service.pointers, noun=noun).known
    status = None if has_other_id(last.record_id or "", located) else located.status
    if not last.intent.is_once_only:
        return status
    # The reply to a once-only write is no proof: only a read is.
    return _ACCEPTED if status is None or kind_of(last.intent.operation).is_proven_by(status, service) else status


def _may_hold_money(service: Service, last: Entry, status: str | None) -> bool:
    """Whether an escrow may hold money: False if `status` proves `last` or a release, or is failed after a create."""
    if any(kind_of(one).is_proven_by(status, service) for one in (RELEASE_TRANSACTION.name, last.intent.operation)):
        return False
    return last.intent.is_once_only or (status or "").casefold() not in service.failed
