"""Batches in the journal: which there are, what each has still to send, and what became of the rest.

A batch is a plan (rows that are not sent yet) and the entries made from it. Row 0 of the plan says what it is. A
row leaves the plan in the commit that records its first intent, so that no row is in both, or in none.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from escrowctl.batch.check import CheckedFile, Sum, hash_key
from escrowctl.batch.rows import KINDS, RowContent, RowKind, decode_row, request_row
from escrowctl.config.service import Service
from escrowctl.contract.money import sum_exactly
from escrowctl.errors import ErrorCode, EscrowctlError, command
from escrowctl.journal.accounts import Account, account_of
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import OPEN_STATES, Entry, Intent, PlanRow, Selection, State
from escrowctl.writes.intents import make_intent

_PAGE = 500
KEY_REFUSED = (401, 403)
"""Refusals of the API key: they say nothing about a row."""


class Batch(NamedTuple):
    """What row 0 of a plan says.

    `verb` is that of its kind of rows, `sums` are by currency. `account` is the name and the fingerprint of the
    account that it was made under; `dropped`: what was not sent was given up.
    """

    name: str
    verb: str
    source: str
    digest: str
    run_key: str | None
    rows: int
    sums: dict[str, tuple[int, str]]
    columns: tuple[str, ...]
    is_json: bool
    service: str
    site: str | None
    profile: str
    account: tuple[str | None, str | None]
    made_at: str
    dropped: bool = False

    @property
    def kind(self) -> RowKind:
        """The kind of its rows."""
        return KINDS[self.verb]

    @property
    def lock(self) -> str:
        """The lock that whoever runs it holds: equal for equal files, so that two cannot start the same one."""
        return _lock_name(self.digest, self.run_key)

    def is_for(self, service: Service) -> bool:
        """Whether it was made for this service, under any of its names."""
        return bool({self.service, self.site or self.service} & {*service.names})

    def is_of(self, account: Account) -> bool:
        """Whether it was certainly made under this account."""
        return account.is_same(Account(*self.account))


class Outcomes(StrEnum):
    """What became of a row; the four add up to the rows of a batch."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"


class Standing(NamedTuple):
    """What became of a batch's rows, by outcome and currency ("": no currency is known)."""

    batch: Batch
    sums: dict[tuple[Outcomes, str], Sum]

    def count(self, outcome: Outcomes) -> int:
        """Return how many rows have this outcome."""
        return sum(found.rows for (one, _), found in self.sums.items() if one is outcome)


class Todo(NamedTuple):
    """A row to send: one of the plan, or (`again`) an entry that gets its next attempt."""

    line: int
    row: RowContent | None = None
    again: Entry | None = None


def outcome_of(entry: Entry) -> Outcomes:
    """Return what became of a row.

    A key that was refused, and a refusal for now, say nothing about the row itself: it counts as not sent.
    """
    match entry.state:
        case State.DONE:
            return Outcomes.DONE
        case State.UNKNOWN | State.IN_FLIGHT:
            return Outcomes.UNKNOWN
        case State.REFUSED:
            settlement = entry.settlement
            is_put_off = settlement.may_repeat or settlement.http_status in KEY_REFUSED
            return Outcomes.NOT_SENT if is_put_off else Outcomes.FAILED
        case _:
            return Outcomes.NOT_SENT


def list_batches(journal: Journal) -> list[Batch]:
    """Return the batches of a journal, oldest first; one whose plan was lost has only its entries' rows."""
    return [_decode(row) if row.content else _rebuild(journal, row.batch) for row in journal.storage.batches()]


def find_batch(journal: Journal, name: str) -> Batch:
    """Return a batch by name; raises EscrowctlError `ErrorCode.NOT_FOUND`."""
    found = next((one for one in list_batches(journal) if one.name == name), None)
    if found is None:
        raise EscrowctlError(
            ErrorCode.NOT_FOUND, f'there is no batch "{name}" in this journal.', hint=command("batch list")
        )
    return found


def find_same(journal: Journal, checked: CheckedFile, service: Service, run_key: str | None) -> Batch | None:
    """Return the batch that a file was made into before, under the same run key."""
    wanted = (checked.kind.operation.verb, checked.digest, run_key)
    return next(
        (
            one
            for one in list_batches(journal)
            if (one.verb, one.digest, one.run_key) == wanted and one.is_for(service) and not one.dropped
        ),
        None,
    )


def lock_of(checked: CheckedFile, run_key: str | None) -> str:
    """Return the lock of the batch that a file is, or becomes."""
    return _lock_name(checked.digest, run_key)


def make_batch(
    journal: Journal,
    checked: CheckedFile,
    service: Service,
    *,
    source: str,
    sums: dict[str, Sum],
    run_key: str | None,
    now: str,
) -> Batch:
    """Return the batch that a file becomes, its rows not yet stored; `sums` are of those that are sent."""
    account = account_of(service).of_entry
    return Batch(
        name=journal.next_batch(),
        verb=checked.kind.operation.verb,
        source=source,
        digest=checked.digest,
        run_key=run_key,
        rows=sum(found.rows for found in sums.values()),
        sums={currency: (found.rows, f"{found.amount:f}") for currency, found in sums.items()},
        columns=checked.columns,
        is_json=checked.is_json,
        service=service.identity,
        site=service.site,
        profile=service.name,
        account=(account.name, account.fingerprint),
        made_at=now,
    )


def store_plan(journal: Journal, batch: Batch, rows: Iterable[tuple[int, RowContent]]) -> Batch:
    """Store a batch and its rows by line, durably in one commit.

    Returns it as it is stored: where another process took its name meanwhile, it has the next one.
    """

    def make_rows(name: str) -> Iterator[PlanRow]:
        yield _encode(batch._replace(name=name))
        for line, row in rows:
            yield PlanRow(name, line, row.encode())

    return batch._replace(name=journal.plan(make_rows))


def drop_plan(journal: Journal, batch: Batch) -> None:
    """Give up what a batch has not sent: its rows leave the plan, and it cannot be resumed."""
    journal.drop_plan(_encode(batch._replace(dropped=True)))


def take_standing(journal: Journal, batch: Batch) -> Standing:
    """Return what became of a batch's rows until now."""
    sums: dict[tuple[Outcomes, str], Sum] = {}

    def add(outcome: Outcomes, currency: str | None, rows: int, amount: Decimal) -> None:
        known = sums.get((outcome, currency or ""), Sum())
        sums[outcome, currency or ""] = Sum(known.rows + rows, sum_exactly((known.amount, amount)))

    left = {currency: Sum(rows, Decimal(amount)) for currency, (rows, amount) in batch.sums.items()}
    for found in journal.storage.add_up(batch.name):
        currency = found.currency or ""
        known = left.get(currency, Sum())
        left[currency] = Sum(known.rows - found.rows, sum_exactly((known.amount, -found.amount)))
        if found.state is not State.REFUSED:
            add(_OUTCOMES[found.state], found.currency, found.rows, found.amount)
    for entry in journal.all(Selection(_PAGE, states=(State.REFUSED,), batch=batch.name)):
        money = entry.intent.money
        add(outcome_of(entry), money.currency if money else None, 1, money.amount if money else Decimal(0))
    for currency, found_left in _shared_out(left).items():
        add(Outcomes.NOT_SENT, currency, found_left.rows, found_left.amount)
    return Standing(batch, sums)


def list_unsent(journal: Journal, batch: Batch, service: Service) -> Iterator[Todo]:
    """Yield what a run has to send, entries first: those that are known not to have happened, or may be repeated."""
    states = [State.NOT_SENT, State.NOT_APPLIED, State.REFUSED, *([State.UNKNOWN] if service.deduplicates else [])]
    again = sorted(
        (
            Todo(entry.intent.line or 0, again=entry)
            for entry in journal.all(Selection(_PAGE, states=tuple(states), batch=batch.name))
            if _may_go_again(entry, service)
        ),
        key=lambda todo: todo.line,
    )
    yield from again
    after = 0
    while page := journal.storage.planned(batch.name, after=after, limit=_PAGE):
        for planned in page:
            yield Todo(planned.row, decode_row(planned.content))
        after = page[-1].row


def _may_go_again(entry: Entry, service: Service) -> bool:
    if entry.state is State.UNKNOWN:
        return service.deduplicates
    if entry.settlement.may_repeat and entry.state is State.REFUSED:
        return service.repeats_throttled
    return outcome_of(entry) is Outcomes.NOT_SENT


class Overlaps(NamedTuple):
    """Rows of a file that are not to be sent again: by line, with the entry or the batch that has them.

    `done` happened under this account; `other` may be another account's, or another spelling of an id.
    """

    done: list[tuple[int, Entry]]
    unknown: list[tuple[int, Entry]]
    other: list[tuple[int, Entry]]
    planned: list[tuple[int, Batch]]


def find_overlaps(journal: Journal, checked: CheckedFile, service: Service) -> Overlaps:
    """Return which rows of a file were sent before, by a batch or a single command, or are planned elsewhere."""
    found = Overlaps([], [], [], _find_planned(journal, checked, service))
    page: list[tuple[int, RowContent]] = []
    template: Intent | None = None

    def look_up() -> None:
        nonlocal template
        if template is None:
            request = request_row(checked.kind, page[0][1], service, name="", found=None)
            template = make_intent(service, request, "", operator="")
        intents = [_like(template, row.key or "") for _, row in page]
        for (line, _), intent, entries in zip(page, intents, journal.find_overlaps(intents), strict=True):
            for entry in entries:
                _sort_in(found, line, entry, intent)
        page.clear()

    for line, row in checked:
        if row.key is not None:
            page.append((line, row))
        if len(page) >= _PAGE:
            look_up()
    if page:
        look_up()
    return found


def _sort_in(found: Overlaps, line: int, entry: Entry, intent: Intent) -> None:
    is_same = intent.account.is_same(entry.intent.account)
    if entry.state in OPEN_STATES:
        found.unknown.append((line, entry))
    elif is_same and (not intent.is_once_only or intent.has_same_id(entry.intent)):
        found.done.append((line, entry))
    else:
        found.other.append((line, entry))


def _find_planned(journal: Journal, checked: CheckedFile, service: Service) -> list[tuple[int, Batch]]:
    """Return the rows whose keys an unfinished batch has not sent yet."""
    planned: dict[str, Batch] = {}
    kind = checked.kind
    for batch in list_batches(journal):
        if batch.dropped or not batch.digest or batch.kind is not kind or not batch.is_for(service):
            continue
        for todo in list_unsent(journal, batch, service):
            key = todo.row.key if todo.row else todo.again and _key_of(todo.again.intent, kind)
            # First by hash, so that only what is probably in both is kept.
            if key is not None and hash_key(kind, key) in checked.keys:
                planned[kind.fold(key)] = batch
    if not planned:
        return []
    folded = ((line, kind.fold(row.key)) for line, row in checked if row.key is not None)
    return [(line, planned[key]) for line, key in folded if key in planned]


def _like(template: Intent, key: str) -> Intent:
    if template.is_once_only:
        return template._replace(resource_id=key, fingerprint=key)
    return template._replace(reference=key)


def _key_of(intent: Intent, kind: RowKind) -> str | None:
    return intent.reference if kind.key == "reference" else intent.resource_id


def _shared_out(left: dict[str, Sum]) -> dict[str, Sum]:
    """Return the rows that have no entry; of releases, whose currency only the record may have told, as one sum."""
    if all(found.rows >= 0 for found in left.values()):
        return {currency: found for currency, found in left.items() if found.rows}
    rows = sum(found.rows for found in left.values())
    return {"": Sum(rows)} if rows else {}


_OUTCOMES = {
    State.DONE: Outcomes.DONE,
    State.UNKNOWN: Outcomes.UNKNOWN,
    State.IN_FLIGHT: Outcomes.UNKNOWN,
    State.NOT_SENT: Outcomes.NOT_SENT,
    State.NOT_APPLIED: Outcomes.NOT_SENT,
}
"""By what is stored; a refusal is read."""


def _lock_name(digest: str, run_key: str | None) -> str:
    return f"batch\n{digest}\n{run_key or ''}"


def _encode(batch: Batch) -> PlanRow:
    return PlanRow(batch.name, 0, json.dumps(batch._asdict()))


def _decode(row: PlanRow) -> Batch:
    known = json.loads(row.content)
    sums = {currency: tuple(found) for currency, found in known["sums"].items()}
    return Batch(**known | {"sums": sums, "columns": tuple(known["columns"]), "account": tuple(known["account"])})


def _rebuild(journal: Journal, name: str) -> Batch:
    """Return a batch of which only the entries are left: a journal that was restored from its export has no plans."""
    found = journal.storage.add_up(name)
    first = journal.storage.in_batch(name, limit=1)[0].intent
    verb = first.verb if first.verb in KINDS else "create"
    names: Collection[str] = tuple(KINDS[verb].used)
    return Batch(
        name=name,
        verb=verb,
        source="",
        digest="",
        run_key=None,
        rows=sum(one.rows for one in found),
        sums={},
        columns=tuple(names),
        is_json=False,
        service=first.service,
        site=first.site,
        profile=first.profile,
        account=(first.account.name, first.account.fingerprint),
        made_at="",
    )
