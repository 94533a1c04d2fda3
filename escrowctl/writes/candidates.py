"""Find the records in a list of the service that an unknown create may have made.

A record with an equal amount does not prove a create: two identical escrows are legitimate. A list without such a
record does not disprove the create: the list may be incomplete, or escrowctl may not understand its records.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from escrowctl.client.pages import Page
from escrowctl.config.service import Service
from escrowctl.contract.operations import CREATE_WEBHOOK
from escrowctl.contract.record import KnownFields, Record, describe_record, read_time
from escrowctl.journal.model import Entry
from escrowctl.writes.result import list_money_differences

_CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far the service's clock may be behind. A record that is older by more is not the result of a write."""

MAX_PAGES = 10_000
"""The most pages that are read: a longer list may have no end."""

_ROUNDING_TOLERANCE = timedelta(seconds=1)
"""How much earlier than the actual time a time of the service may be, if it has no fractions of a second."""


class ListedRecords(NamedTuple):
    """The records that were read from a list. `has_more`: the list has more records; escrowctl cannot read them."""

    records: list[Record]
    has_more: bool


class Candidates(NamedTuple):
    """The records of a list, compared with the create of an entry.

    `field` is the compared value: amount or URL. `matching` are the records that the create may have made: the
    value is equal, the time is not too early, and no other entry made them. `unread` counts records without value.
    """

    entry: Entry
    listed: ListedRecords
    matching: list[Record]
    unread: int
    field: str

    @property
    def doubts(self) -> list[str]:
        """Reasons why the create may have been applied, as sentences without their full stop."""
        count = len(self.listed.records)
        unreadable = [f"escrowctl cannot read the {self.field} of {self.unread} of the {count} records"]
        matching = [f"{one.known.id} matches: {describe_match(self.entry, one)}" for one in self.matching]
        cut = [f"escrowctl can only read {count} records, and the service has more"]
        return matching + unreadable * bool(self.unread) + cut * self.listed.has_more


def read_listed(entry: Entry, pages: Iterable[Page]) -> ListedRecords:
    """Return the records of a list. If the newest come first, stop at the first page older than the write."""
    records: list[Record] = []
    has_more, is_newest_first = False, True
    oldest = datetime.max.replace(tzinfo=UTC)
    for page in islice(pages, MAX_PAGES):
        records += page.items
        for one in page.items:
            created = read_time(one.known.created)
            if created is None or created > oldest:
                is_newest_first = False
            else:
                oldest = created
        is_older = bool(page.items) and predates_write(entry, page.items[0].known)
        # Records of one moment are in any order.
        if is_older and is_newest_first and oldest != read_time(records[0].known.created):
            return ListedRecords(records, has_more=False)
        has_more = page.has_more
    return ListedRecords(records, has_more)


def find_candidates(
    entry: Entry, listed: ListedRecords, service: Service, *, is_taken: Callable[[str], bool]
) -> Candidates:
    """Return the records that a create may have made. `is_taken(id)`: a different entry created this id."""
    compared = [(one, _has_equal_value(entry, one, service)) for one in listed.records]
    matching = [one for one, is_equal in compared if is_equal and not predates_write(entry, one.known)]
    return Candidates(
        entry,
        listed,
        [one for one in matching if one.known.id is None or not is_taken(one.known.id)],
        sum(is_equal is None for _, is_equal in compared),
        "URL" if entry.intent.operation == CREATE_WEBHOOK.name else "amount",
    )


def predates_write(entry: Entry, known: KnownFields, *, tolerance: timedelta = _CLOCK_TOLERANCE) -> bool:
    """Whether a record was created before a write was first sent; False if either time is not known."""
    created = read_time(known.created)
    if created is None or entry.is_recorded_later or (entry.origin is not None and entry.attempt > 1):
        # When an imported or recorded write was first sent is not known.
        return False
    first = entry.sent_at if entry.origin is not None else entry.history[0].at
    return created < datetime.fromisoformat(first) - tolerance


def describe_match(entry: Entry, record: Record) -> str:
    """Describe a record and its time of creation. Add a note if this time is before the write was sent."""
    described, created = describe_record(record.known), record.known.created
    if created is None:
        return described
    before = f", before {entry.name} was sent (or the clocks differ)" if may_predate_write(entry, record) else ""
    return f"{described}, created {created}{before}"


def may_predate_write(entry: Entry, record: Record) -> bool:
    """Whether the clocks say that a record was created before a write was first sent. The clocks may differ."""
    return predates_write(entry, record.known, tolerance=_ROUNDING_TOLERANCE)


def _has_equal_value(entry: Entry, record: Record, service: Service) -> bool | None:
    """Whether a record has the amount or the URL of a create; None: escrowctl finds no such value in the record."""
    known, money = record.known, entry.intent.money
    if entry.intent.operation == CREATE_WEBHOOK.name:
        url = record.value.get(service.webhooks.url_field) if isinstance(record.value, dict) else None
        return f'"{url}"' in (entry.intent.body or "") if isinstance(url, str) else None
    if known.amount is None or known.currency is None:
        return None
    return money is not None and not list_money_differences(known, money)
