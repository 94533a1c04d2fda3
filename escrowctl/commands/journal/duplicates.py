"""Reports about writes that are done twice."""

from collections.abc import Iterable, Sequence

from escrowctl.batch.check import Sum
from escrowctl.commands.sums import add_up
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import ErrorCode, EscrowctlError, command
from escrowctl.journal.duplicates import Duplicate
from escrowctl.journal.fields import view
from escrowctl.journal.model import Entry
from escrowctl.session import Session


def report_duplicates(session: Session, found: Sequence[Duplicate]) -> str:
    """Name each pair in a note, and return a phrase about all of them."""
    for pair in found:
        shared = (
            f"id {pair.id}" if pair.id else "",
            f'reference "{pair.reference}"' if pair.reference is not None else "",
            f"key {pair.idempotency_key}" if pair.idempotency_key else "",
        )
        same = ", ".join(filter(None, shared))
        message = f"{same}: done twice, as {_name_entry(pair.first)} and as {_name_entry(pair.second)}"
        session.console.note("done_twice", message, word="duplicate", important=True)
    sums = _add_up(found)
    count = sum(one.rows for one in sums.values())
    moved = ", ".join(f"{one.amount:f} {currency}" for currency, one in sorted(sums.items()) if currency)
    writes = "1 write" if len(found) == 1 else f"{len(found):,} writes"
    return f"{writes} done twice: {count:,} entries" + (f", together {moved}" if moved else "")


def pairs_with(found: Sequence[Duplicate], entries: Iterable[Entry]) -> list[Duplicate]:
    """Return the pairs that contain one of these entries."""
    numbers = {entry.number for entry in entries}
    return [pair for pair in found if numbers & {pair.first.number, pair.second.number}]


def done_twice(session: Session, found: Sequence[Duplicate], what: str, done: str) -> EscrowctlError:
    """Report pairs, and return the error (`ErrorCode.CHECK_FAILED`) that `what` shows them. `done` is a sentence."""
    hints = (command("journal list --duplicates", "to see them again"), "ask the service which of each two to keep")
    message = f"{what} shows {report_duplicates(session, found)}. {done}"
    return EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hints)


def view_duplicates(found: Sequence[Duplicate]) -> dict[str, JsonValue]:
    """Return the pairs and the sums of their entries by currency, as JSON."""
    pairs: list[JsonValue] = [
        {
            "id": pair.id,
            "reference": pair.reference,
            "idempotency_key": pair.idempotency_key,
            "entries": [view(entry, whole=False) | {"origin": entry.origin} for entry in (pair.first, pair.second)],
        }
        for pair in found
    ]
    sums: dict[str, JsonValue] = {
        currency: Number(f"{one.amount:f}") for currency, one in _add_up(found).items() if currency
    }
    return {"duplicates": pairs, "sums": sums}


def _add_up(found: Sequence[Duplicate]) -> dict[str, Sum]:
    entries = {entry.number: entry for pair in found for entry in (pair.first, pair.second)}
    return add_up(entry.intent.money for entry in entries.values())


def _name_entry(entry: Entry) -> str:
    parts = (
        entry.intent.verb,
        str(entry.intent.money or ""),
        entry.record_id or "",
        "imported" if entry.origin else "",
    )
    return f"{entry.name} ({', '.join(part for part in parts if part)})"
