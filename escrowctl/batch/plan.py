"""Batches in the journal: list them, their unsent rows, and the outcomes of their sent rows.

A batch has a plan (the rows that are not sent yet) and the entries made from it. Row 0 of the plan describes the
batch. A row leaves the plan in the commit that records its first intent, so it is either in the plan or has
an entry.
"""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from escrowctl.batch.check import CheckedFile, Sum, add_rows, count_rows
from escrowctl.batch.rows import CREATES, KINDS, RowContent, RowKind, content_of, decode_row
from escrowctl.config.service import Service
from escrowctl.contract.json import Number
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, command, not_sent
from escrowctl.journal.account import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import KEY_REFUSED_STATUSES, OPEN_STATES, Entry, Selection, State
from escrowctl.journal.storage import PlanRow
from escrowctl.writes.requests import account_of

_PAGE_SIZE = 500


class Batch(NamedTuple):
    """A batch, as row 0 of its plan describes it.

    `verb` says what the rows do: create or release. `sums` maps currency to `Sum`. `account` is the name and the
    fingerprint of the account that made the batch. `reference_field` is the field for the reference in the body of
    a create. `dropped`: the unsent rows were given up.
    """

    name: str
    verb: str
    source: str
    digest: str
    run_key: str | None
    rows: int
    sums: dict[str, Sum]
    columns: tuple[str, ...]
    is_json: bool
    service: str
    site: str | None
    profile: str
    account: tuple[str | None, str | None]
    made_at: str
    reference_field: str | None = None
    dropped: bool = False

    @property
    def kind(self) -> RowKind:
        """The kind of the batch's rows."""
        return KINDS[self.verb]

    def is_for(self, service: Service) -> bool:
        """Whether the batch was made for this service, under any name of the service."""
        return bool({self.service, self.site or self.service} & {*service.journal_names})


class Summary(NamedTuple):
    """The rows of a batch, by outcome and currency ("": no currency is known).

    `remarks` counts rows that are done, but not as requested. `unread` counts accepted releases that no read has
    confirmed.
    """

    batch: Batch
    sums: dict[tuple[Outcome, str], Sum]
    remarks: int
    unread: int

    @property
    def counts(self) -> Counter[Outcome]:
        """The number of rows by outcome."""
        counts: Counter[Outcome] = Counter()
        for (outcome, _), found in self.sums.items():
            counts[outcome] += found.rows
        return counts


def outcome_of(entry: Entry) -> Outcome:
    """Return the outcome of a row. A row that was throttled, or whose API key was refused, counts as not sent."""
    settlement = entry.settlement
    return _find_outcome(entry.state, settlement.http_status, may_repeat=settlement.may_repeat)


def _find_outcome(state: State, http_status: int | None, *, may_repeat: bool) -> Outcome:
    # A refused key or a throttled request says nothing about the row itself.
    if state is State.REFUSED and not may_repeat and http_status not in KEY_REFUSED_STATUSES:
        return Outcome.REFUSED
    if state in OPEN_STATES:
        return Outcome.UNKNOWN
    return Outcome.DONE if state is State.DONE else Outcome.NOT_SENT


def list_batches(journal: Journal) -> list[Batch]:
    """Return the batches of a journal, oldest first."""
    return [_decode_batch(row) for row in journal.storage.list_batches()]


def find_batch(journal: Journal, name: str) -> Batch:
    """Return a batch by name; raises EscrowctlError `ErrorCode.NOT_FOUND`."""
    for batch in list_batches(journal):
        if batch.name == name:
            return batch
    journal.require_complete()  # an older copy lacks batches
    hint = command("batch list", "to see the batches in this journal")
    raise EscrowctlError(ErrorCode.NOT_FOUND, f'there is no batch "{name}" in this journal.', hint=hint)


def find_same_batch(journal: Journal, service: Service, *, verb: str, digest: str, run_key: str | None) -> Batch | None:
    """Return the batch that was already made from a file under the same run key; None if there is none."""
    for one in list_batches(journal):
        is_same_file = (one.verb, one.digest, one.run_key) == (verb, digest, run_key)
        is_other_account = account_of(service).is_other(Account(*one.account))
        if is_same_file and one.is_for(service) and not (one.dropped or is_other_account):
            return one
    return None


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
    """Return a new batch for a file, not stored yet. `sums` is of the rows to send, by currency."""
    account = account_of(service).as_stored
    return Batch(
        name=journal.next_batch(),
        verb=checked.kind.operation.verb,
        source=source,
        digest=checked.digest,
        run_key=run_key,
        rows=sum(found.rows for found in sums.values()),
        sums=sums,
        columns=checked.columns,
        is_json=checked.is_json,
        service=service.identity,
        site=service.site,
        profile=service.name,
        account=(account.name, account.fingerprint),
        made_at=now,
        reference_field=service.reference_field,
    )


def store_plan(journal: Journal, service: Service, batch: Batch, rows: Iterable[RowContent]) -> Batch:
    """Store a batch and its rows durably, in one commit.

    Return the batch as stored: with the next free name if another process has taken the name of `batch`. Raises
    `ErrorCode.BUSY` if another process has stored the same rows meanwhile.
    """

    def make_rows(name: str) -> Iterator[PlanRow]:
        same = find_same_batch(journal, service, verb=batch.verb, digest=batch.digest, run_key=batch.run_key)
        if same is not None:
            message = f"another process has just stored these rows as {same.name}."
            raise not_sent(ErrorCode.BUSY, message, hint=command(f"batch show {same.name}", "to see its progress"))
        yield encode_batch(batch._replace(name=name))
        for row in rows:
            yield make_plan_row(name, row.line, row.encode())

    return batch._replace(name=journal.store_new_batch(make_rows))


def smaller_caps(own: Mapping[str, Number], planned: Mapping[str, str]) -> Mapping[str, Number]:
    """Return the caps of a profile, lowered to the caps in a plan. A currency that only one of them has allows nothing.

    If one of them has no caps, the result is the other.
    """
    others = {code: Number(cap) for code, cap in planned.items()}
    if not (own and others):
        return own or others
    nothing = Number("0")
    return {code: min(own.get(code, nothing), others.get(code, nothing)) for code in {*own, *others}}


def plan_again(journal: Journal, batch: Batch, rows: Iterable[RowContent]) -> None:
    """Put rows that were taken or sent, and may be sent again, back into a batch's plan. Any process may take them."""
    planned = [
        make_plan_row(batch.name, row.line, row.encode() if row.sent is None else str(row.sent.number)) for row in rows
    ]
    if planned:
        journal.store_plan_rows(planned)


def store_reasons(journal: Journal, batch: Batch, reasons: Mapping[int, str]) -> None:
    """Store in the plan why rows were not sent. `reasons` maps line to reason; lines not planned are skipped."""
    if reasons:
        # They are read in the commit that stores them: until then, another process may begin one.
        journal.store_plan_rows(
            make_plan_row(batch.name, line, decode_row(read_plan_text(planned))._replace(held=why).encode())
            for line, why in reasons.items()
            for planned in journal.storage.read_plan(batch.name, after=line - 1, limit=1)
            if planned.row == line and not is_planned_again(planned)
        )


def sum_up(journal: Journal, batch: Batch) -> Summary:
    """Return the outcomes of a batch's rows until now. Rows without an entry count as not sent."""
    sums: dict[tuple[Outcome, str], Sum] = {}
    unsent = dict(batch.sums)
    remarks = unread = 0
    for found in journal.storage.sum_batch(batch.name):
        currency = found.currency or ""
        outcome = _find_outcome(found.state, found.http_status, may_repeat=found.may_repeat)
        sums[outcome, currency] = sums.get((outcome, currency), Sum()).plus(found.rows, found.amount)
        unsent[currency] = unsent.get(currency, Sum()).plus(-found.rows, -found.amount)
        if found.has_remark:
            remarks += found.rows
        elif found.is_unread:
            unread += found.rows
    if "" in unsent or any(found.rows < 0 for found in unsent.values()):
        # The currency of a release may be known only from its record, so the rest is one sum.
        unsent = {"": Sum(sum(found.rows for found in unsent.values()))}
    for currency, rest in unsent.items():
        if rest.rows:
            known = sums.get((Outcome.NOT_SENT, currency), Sum())
            sums[Outcome.NOT_SENT, currency] = known.plus(rest.rows, rest.amount)
    return Summary(batch, sums, remarks, unread)


def sum_unsent(
    journal: Journal, batch: Batch, service: Service, *, is_running: bool = False
) -> tuple[dict[str, Sum], int]:
    """Return the sums by currency of the rows that a run would send, and how many have an unknown outcome.

    `is_running`: other processes send rows meanwhile, so the sums are not exact, and missing rows are not noticed.

    Raises EscrowctlError: `JOURNAL_UNUSABLE` if rows of the plan are damaged or missing; `CONFLICT` if a row to
    send again was sent to a different address first, because its idempotency key is valid only there, or if references
    would be sent in another field than the batch was created with.
    """
    sums: dict[str, Sum] = {}
    planned = unknown = 0
    for row in list_unsent(journal, batch, service):
        if row.sent is None:
            planned += 1
        elif service.covers_url(row.sent.intent.url):
            unknown += row.sent.state is State.UNKNOWN
        else:
            raise not_sent(
                ErrorCode.CONFLICT,
                f"line {row.line} ({row.sent.name}) was sent to {row.sent.intent.url}, but the "
                f"chosen service is {service.origin}: use the base URL that the line was sent to.",
            )
        add_rows(sums, [row])
    missing = batch.rows - planned - sum(found.rows for found in journal.storage.sum_batch(batch.name))
    if missing and not is_running:
        rows = count_rows(abs(missing))
        raise damaged_plan(f"{batch.name} lacks {rows}" if missing > 0 else f"{batch.name} has {rows} too many")
    earlier, now = batch.reference_field, service.reference_field
    if sums and batch.kind is CREATES and earlier != now:
        setting = f"set reference_field {shlex.quote(earlier)}" if earlier is not None else "unset reference_field"
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{batch.name} was created with reference_field {earlier or 'not set'}, but now it is {now or 'not set'}.",
            hint=command(f"config {setting}", "to send its rows like the others"),
        )
    return sums, unknown


def list_unsent(journal: Journal, batch: Batch, service: Service) -> Iterator[RowContent]:
    """Yield the rows that a run has to send: first the entries that may be sent again, then the plan's other rows."""
    yield from list_again(journal, batch, service)
    after = 0
    while page := journal.storage.read_plan(batch.name, after=after, limit=_PAGE_SIZE):
        yield from (read_row(journal, planned) for planned in page if not is_planned_again(planned))
        after = page[-1].row


def is_planned_again(row: PlanRow) -> bool:
    """Whether a plan's row has an entry already, and is in the plan only to be sent again."""
    return read_plan_text(row).isdecimal()


def read_row(journal: Journal, row: PlanRow) -> RowContent:
    """Return what is sent for a row of a plan. Raises EscrowctlError `JOURNAL_UNUSABLE` if the row is damaged."""
    if not is_planned_again(row):
        return decode_row(read_plan_text(row), row.row)
    entry = journal.find(int(read_plan_text(row)))
    if entry is None:
        raise damaged_plan(f"line {row.row} of {row.batch} has no entry")
    return content_of(entry)


def list_again(journal: Journal, batch: Batch, service: Service) -> list[RowContent]:
    """Return the rows of a batch that were sent, and may be sent again, in order."""
    states = (State.NOT_SENT, State.NOT_APPLIED, State.REFUSED, *([State.UNKNOWN] if service.deduplicates else []))
    entries = journal.select_all(Selection(states=states, batch=batch.name))
    return sorted([content_of(entry) for entry in entries if may_send_again(entry, service)], key=lambda one: one.line)


def may_send_again(entry: Entry, service: Service) -> bool:
    """Whether the row of an entry may be sent again."""
    if entry.state is State.REFUSED and entry.settlement.may_repeat:
        return service.may_repeat_throttled
    return outcome_of(entry) is Outcome.NOT_SENT or (entry.state is State.UNKNOWN and service.deduplicates)


def encode_batch(batch: Batch) -> PlanRow:
    """Return row 0 of a batch's plan."""
    return make_plan_row(batch.name, 0, json.dumps(batch._asdict(), default=str))


def _decode_batch(row: PlanRow) -> Batch:
    fields = json.loads(read_plan_text(row))
    fields["sums"] = {code: Sum(rows, Decimal(amount)) for code, (rows, amount) in fields["sums"].items()}
    fields["columns"], fields["account"] = tuple(fields["columns"]), tuple(fields["account"])
    return Batch(**fields)


def make_plan_row(batch: str, row: int, text: str) -> PlanRow:
    """Return a plan row with a checksum.

    The journal's hash chain does not cover the plan. Without the checksum, a changed row could pay a wrong amount.
    """
    return PlanRow(batch, row, f"{_checksum(batch, row, text)} {text}")


def read_plan_text(row: PlanRow) -> str:
    """Return the text of a plan's row. Raises EscrowctlError `JOURNAL_UNUSABLE` if its checksum does not match."""
    checksum, _, text = row.content.partition(" ")
    if checksum != _checksum(row.batch, row.row, text):
        raise damaged_plan(f"line {row.row} of {row.batch} was changed" if row.row > 0 else f"{row.batch} was changed")
    return text


def _checksum(batch: str, row: int, text: str) -> str:
    return hashlib.blake2b(f"{batch}\n{row}\n{text}".encode(), digest_size=8).hexdigest()


def damaged_plan(why: str) -> EscrowctlError:
    """Return the error for a plan that cannot be used. `why` ends the message."""
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"the plan in the journal is damaged: {why}.",
        hint="ask the service which rows it has, before you send any of the rows from a new file",
    )
