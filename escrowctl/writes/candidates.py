"""Which records of a list an unknown create may have made.

An equal amount proves nothing, for two identical escrows are legitimate. Nor does a list without one: it may be
incomplete, and escrowctl may not understand it.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from escrowctl.client.pages import Page
from escrowctl.config.service import Service
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import CREATE_WEBHOOK
from escrowctl.contract.record import Located, Record, describe
from escrowctl.contract.timestamps import read_time
from escrowctl.journal.model import Entry
from escrowctl.writes.create import list_differences

_CLOCKS = timedelta(minutes=5)
"""How far the service's clock may be behind: what it created earlier than that before a write is not its result."""

MOST_PAGES = 10_000
"""A list with more of them may have no end."""

_WHOLE_SECOND = timedelta(seconds=1)
"""A service may state times without fractions."""


class Listed(NamedTuple):
    """The records of a list that a create may have made, and others; `is_cut`: there are more, which cannot be read."""

    items: list[Record]
    is_cut: bool


class Candidates(NamedTuple):
    """The records of a list that equal the create of an entry.

    `matching` may be what it made. `earlier` were there before it was sent. `unread` is how many of all `listed` have
    nothing that can be compared.
    """

    entry: Entry
    listed: Listed
    matching: list[Record]
    earlier: list[Record]
    unread: int
    what: str

    @property
    def doubts(self) -> list[str]:
        """What speaks against a decision that nothing was created, as sentences without their end."""
        count = len(self.listed.items)
        unread = [f"escrowctl can read no {self.what} in {self.unread} of the {count} records"]
        matching = [f"{one.located.id} matches: {say(self.entry, one)}" for one in self.matching]
        cut = [f"escrowctl can only read {count} records, and the service has more"]
        return matching + unread * bool(self.unread) + cut * self.listed.is_cut


def collect(entry: Entry, pages: Iterable[Page]) -> Listed:
    """Return the records of a list; one that begins with the newest is read back to those before a write was sent."""
    items: list[Record] = []
    is_cut = False
    oldest: datetime | None = datetime.max.replace(tzinfo=UTC)
    for page in islice(pages, MOST_PAGES):
        items += page.items
        for one in page.items:
            at = read_time(one.located.created)
            # None from the first record that is not in this order, or without a time.
            oldest = at if at and oldest and at <= oldest else None
        is_older = bool(page.items) and was_there_before(entry, page.items[0].located)
        # Records of one moment are in any order.
        if is_older and oldest and oldest != read_time(items[0].located.created):
            return Listed(items, is_cut=False)
        is_cut = page.has_more
    return Listed(items, is_cut)


def compare(entry: Entry, listed: Listed, service: Service, *, is_taken: Callable[[str], bool]) -> Candidates:
    """Return the records that a create may have made; `is_taken`: another entry created the one with this id."""
    is_escrow = entry.intent.operation != CREATE_WEBHOOK.name
    fits, is_readable = (_fits_money, _has_money) if is_escrow else (_fits_url, _has_url)
    fitting = [one for one in listed.items if fits(entry, one, service)]
    free = [one for one in fitting if one.located.id is None or not is_taken(one.located.id)]
    return Candidates(
        entry,
        listed,
        [one for one in free if not was_there_before(entry, one.located)],
        [one for one in free if was_there_before(entry, one.located)],
        sum(not is_readable(one, service) for one in listed.items),
        "amount" if is_escrow else "URL",
    )


def was_there_before(entry: Entry, located: Located, *, tolerance: timedelta = _CLOCKS) -> bool:
    """Whether a record was created before a write was first sent, as far as both are known and clocks agree."""
    created = read_time(located.created)
    if created is None or (entry.origin is not None and entry.attempt > 1):
        # Of an imported entry the first attempt is not known.
        return False
    first = entry.sent_at if entry.origin is not None else entry.history[0].at
    return created < datetime.fromisoformat(first) - tolerance


def say(entry: Entry, record: Record) -> str:
    """Return a record in a few words, and when it was created; one of the time just before may not be the write's."""
    described, created = describe(record.located), record.located.created
    if created is None:
        return described
    before = f", before {entry.name} was sent (or the clocks differ)" if may_be_older(entry, record) else ""
    return f"{described}, created {created}{before}"


def may_be_older(entry: Entry, record: Record) -> bool:
    """Whether a record was created before a write was first sent, if the clocks are right."""
    return was_there_before(entry, record.located, tolerance=_WHOLE_SECOND)


def _has_money(record: Record, _service: Service) -> bool:
    return record.located.amount is not None and record.located.currency is not None


def _fits_money(entry: Entry, record: Record, service: Service) -> bool:
    money = entry.intent.money
    return money is not None and _has_money(record, service) and not list_differences(record.located, money)


def _url(record: Record, service: Service) -> JsonValue:
    return record.value.get(service.webhooks.url_field) if isinstance(record.value, dict) else None


def _has_url(record: Record, service: Service) -> bool:
    return isinstance(_url(record, service), str)


def _fits_url(entry: Entry, record: Record, service: Service) -> bool:
    return _has_url(record, service) and f'"{_url(record, service)}"' in (entry.intent.body or "")
