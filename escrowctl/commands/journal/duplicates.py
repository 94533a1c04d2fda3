"""Report duplicates, which are writes that two journals both did: as notes, as an error, and as JSON."""

from collections.abc import Sequence

from escrowctl.batch.check import Sum
from escrowctl.commands.sums import add_up
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import ErrorCode, EscrowctlError, command
from escrowctl.journal.duplicates import DuplicatePair
from escrowctl.journal.fields import view
from escrowctl.journal.model import Entry
from escrowctl.session import Session


def report_duplicates(session: Session, pairs: Sequence[DuplicatePair]) -> str:
    """Write a note about each pair. Return their sum as text: `1 write done twice: 2 entries, together 20 EUR`."""
    for pair in pairs:
        fields = (
            f"id {pair.id}" if pair.id else "",
            f'reference "{pair.reference}"' if pair.reference is not None else "",
            f"key {pair.idempotency_key}" if pair.idempotency_key else "",
        )
        shared_fields = ", ".join(filter(None, fields))
        first, second = _describe_entry(pair.first), _describe_entry(pair.second)
        message = f"the write was done twice, as {first} and as {second}: both have {shared_fields}"
        session.console.note("done_twice", message, label="duplicate", important=True)
    sums = _sum_entries(pairs)
    count = sum(one.rows for one in sums.values())
    moved = ", ".join(f"{one.amount:f} {currency}" for currency, one in sorted(sums.items()) if currency)
    writes = "1 write" if len(pairs) == 1 else f"{len(pairs):,} writes"
    return f"{writes} done twice: {count:,} entries" + (f", together {moved}" if moved else "")


def make_duplicates_error(session: Session, pairs: Sequence[DuplicatePair], source: str, effect: str) -> EscrowctlError:
    """Write a note about each pair, and return the `ErrorCode.CHECK_FAILED` error.

    `source`: the name of the import or entry that has the pairs. `effect`: a sentence about what the command did.
    """
    hints = (command("journal list --duplicates", "to see the writes"), "ask the service which of each pair to keep")
    message = f"{source} shows {report_duplicates(session, pairs)}. {effect}"
    return EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hints)


def view_duplicates(pairs: Sequence[DuplicatePair]) -> dict[str, JsonValue]:
    """Return a JSON object with the pairs, and the sums of their entries by currency."""
    documents: list[JsonValue] = [
        {
            "id": pair.id,
            "reference": pair.reference,
            "idempotency_key": pair.idempotency_key,
            "entries": [
                view(entry, is_complete=False) | {"origin": entry.origin} for entry in (pair.first, pair.second)
            ],
        }
        for pair in pairs
    ]
    sums: dict[str, JsonValue] = {
        currency: Number(f"{one.amount:f}") for currency, one in _sum_entries(pairs).items() if currency
    }
    return {"duplicates": documents, "sums": sums}


def _sum_entries(pairs: Sequence[DuplicatePair]) -> dict[str, Sum]:
    entries = {entry.number: entry for pair in pairs for entry in (pair.first, pair.second)}
    return add_up(entry.intent.money for entry in entries.values())


def _describe_entry(entry: Entry) -> str:
    parts = (entry.intent.verb, str(entry.intent.money or ""), entry.record_id, "imported" if entry.origin else "")
    return f"{entry.name} ({', '.join(filter(None, parts))})"
