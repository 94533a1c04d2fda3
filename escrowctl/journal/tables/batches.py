"""What the journal's tables have about batches: rows that are not sent yet, and sums."""

from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal

from escrowctl.contract.money import multiply_exactly, sum_exactly
from escrowctl.journal.model import State
from escrowctl.journal.storage import BatchSum, PlanRow
from escrowctl.journal.tables.database import Database, placeholders

_SELECT_SUMS = """
SELECT e.state, {currency}, CAST({http_status} AS INTEGER), CAST({may_repeat} AS INTEGER), e.remark IS NOT NULL,
  e.state = 'done' AND e.resource_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM main.records r WHERE r.entry = e.number AND CAST({verified} AS INTEGER) = 1),
  {amount}, count(*)
FROM main.entries e
JOIN main.records first ON first.sequence = (SELECT min(sequence) FROM main.records WHERE entry = e.number)
LEFT JOIN main.records last
  ON e.state = 'refused' AND last.sequence = (SELECT max(sequence) FROM main.records WHERE entry = e.number)
WHERE e.batch = ? AND e.origin IS NULL GROUP BY 1, 2, 3, 4, 5, 6, 7"""
_MEMBERS = {"currency": "first", "amount": "first", "http_status": "last", "may_repeat": "last", "verified": "r"}
"""Member of a record's facts -> the name of the table in the statement above."""

_SELECT_CLAIMABLE = """
SELECT batch, row, content FROM main.plans WHERE batch = ? AND row > 0 AND sender IS NULL ORDER BY row LIMIT ?"""


def claim(database: Database, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
    """Mark rows of a plan with their sender inside a transaction, and return them; see `storage.Storage.claim`."""
    known = "SELECT DISTINCT sender FROM main.plans WHERE batch = ? AND sender IS NOT NULL AND sender != ?"
    for (other,) in database.execute(known, (batch, sender)).fetchall():
        if not is_alive(other):
            database.execute("UPDATE main.plans SET sender = NULL WHERE batch = ? AND sender = ?", (batch, other))
    rows = [PlanRow(*row) for row in database.execute(_SELECT_CLAIMABLE + database.row_locks, (batch, limit))]
    if rows:
        mark = f"UPDATE main.plans SET sender = ? WHERE batch = ? AND row IN ({placeholders(rows)})"
        database.execute(mark, (sender, batch, *(one.row for one in rows)))
    return rows


def add_up(database: Database, batch: str) -> list[BatchSum]:
    """Return the counts and exact sums of a batch's entries; see `storage.BatchSum`. Does not build the entries."""
    amounts: defaultdict[tuple[State, str | None, int | None, bool, bool, bool], list[tuple[int, Decimal]]]
    amounts = defaultdict(list)
    texts = {name: database.json_text.format(column=f"{one}.facts", name=name) for name, one in _MEMBERS.items()}
    for state, currency, http_status, *flags, amount, rows in database.execute(_SELECT_SUMS.format(**texts), (batch,)):
        may_repeat, has_remark, is_unread = map(bool, flags)
        key = (State(state), currency, http_status, may_repeat, has_remark, is_unread)
        amounts[key].append((rows, multiply_exactly(Decimal(amount or 0), rows)))
    return [
        BatchSum(*key, sum(rows for rows, _ in found), sum_exactly(amount for _, amount in found))
        for key, found in amounts.items()
    ]
