"""Find the records of a list that an unknown create may have made.

An equal amount proves nothing, because two identical escrows are legitimate. Nor does a list without an equal amount:
it may be incomplete, and escrowctl may not understand it.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from escrowctl.client.pages import Page
from escrowctl.config.service import Service
from escrowctl.contract.operations import CREATE_WEBHOOK
from escrowctl.contract.record import Located, Record, describe, read_time
from escrowctl.journal.model import Entry
from escrowctl.writes.create import list_differences

_CLOCKS = timedelta(minutes=5)
"""How far the service's clock may be behind. A record created longer than this before a write is not its result."""

MOST_PAGES = 10_000
"""A list with more pages may have no end."""

_WHOLE_SECOND = timedelta(seconds=1)
"""A service may state times without fractions."""


class Listed(NamedTuple):
    """The records that were read from a list; `is_cut`: there are more, which cannot be read."""

    items: list[Record]
    is_cut: bool


class Candidates(NamedTuple):
    """The records of a list that equal the create of an entry.

    `matching` may be its result: they did not exist before it was sent. `unread` counts the records of `listed` that
    have no value to compare; `what` names that value.
    """

    entry: Entry
    listed: Listed
    matching: list[Record]
    unread: int
    what: str

    @property
    def doubts(self) -> list[str]:
        """Reasons against a decision that nothing was created, as sentences without their full stop."""
        count = len(self.listed.items)
        unread = [f"escrowctl can read no {self.what} in {self.unread} of the {count} records"]
        matching = [f"{one.located.id} matches: {say(self.entry, one)}" for one in self.matching]
        cut = [f"escrowctl can only read {count} records, and the service has more"]
        return matching + unread * bool(self.unread) + cut * self.listed.is_cut


def collect(entry: Entry, pages: Iterable[Page]) -> Listed:
    """Return the records of a list. If the newest come first, stop at records from before a write was sent."""
    items: list[Record] = []
    is_cut = False
    oldest: datetime | None = datetime.max.replace(tzinfo=UTC)
    for page in islice(pages, MOST_PAGES):
        items += page.items
        for one in page.items:
            at = read_time(one.located.created)
            # None after the first record that is out of order or has no time.
            oldest = at if at and oldest and at <= oldest else None
        is_older = bool(page.items) and was_there_before(entry, page.items[0].located)
        # Records of one moment are in any order.
        if is_older and oldest and oldest != read_time(items[0].located.created):
            return Listed(items, is_cut=False)
        is_cut = page.has_more
    return Listed(items, is_cut)


def compare(entry: Entry, listed: Listed, service: Service, *, is_taken: Callable[[str], bool]) -> Candidates:
    """Return the records that a create may have made; `is_taken`: another entry created the record with this id."""
    compared = [(one, _equals(entry, one, service)) for one in listed.items]
    matching = [one for one, is_equal in compared if is_equal and not was_there_before(entry, one.located)]
    return Candidates(
        entry,
        listed,
        [one for one in matching if one.located.id is None or not is_taken(one.located.id)],
        sum(is_equal is None for _, is_equal in compared),
        "URL" if entry.intent.operation == CREATE_WEBHOOK.name else "amount",
    )


def was_there_before(entry: Entry, located: Located, *, tolerance: timedelta = _CLOCKS) -> bool:
    """Whether a record was created before a write was first sent; False if either time is not known."""
    created = read_time(located.created)
    if created is None or (entry.origin is not None and entry.attempt > 1):
        # The first attempt of an imported entry is not known.
        return False
    first = entry.sent_at if entry.origin is not None else entry.history[0].at
    return created < datetime.fromisoformat(first) - tolerance


def say(entry: Entry, record: Record) -> str:
    """Return a short description of a record with its time of creation, and a note if it may be too old."""
    described, created = describe(record.located), record.located.created
    if created is None:
        return described
    before = f", before {entry.name} was sent (or the clocks differ)" if may_be_older(entry, record) else ""
    return f"{described}, created {created}{before}"


def may_be_older(entry: Entry, record: Record) -> bool:
    """Whether a record was created before a write was first sent, if the clocks are right."""
    return was_there_before(entry, record.located, tolerance=_WHOLE_SECOND)


def _equals(entry: Entry, record: Record, service: Service) -> bool | None:
    """Whether a record has the amount or the URL of a create; None: escrowctl finds no such value in it."""
    located, money = record.located, entry.intent.money
    if entry.intent.operation == CREATE_WEBHOOK.name:
        url = record.value.get(service.webhooks.url_field) if isinstance(record.value, dict) else None
        return f'"{url}"' in (entry.intent.body or "") if isinstance(url, str) else None
    if located.amount is None or located.currency is None:
        return None
    return money is not None and not list_differences(located, money)
