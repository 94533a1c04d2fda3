"""Find the rows of a file that were sent before, or that another batch still plans to send."""

from itertools import islice
from typing import NamedTuple

from escrowctl.batch.check import CheckedFile
from escrowctl.batch.plan import Batch, list_batches, list_unsent
from escrowctl.batch.rows import RowContent, RowKind, make_request
from escrowctl.config.service import Service
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import OPEN_STATES, Entry, Intent
from escrowctl.writes.requests import make_intent

_PAGE_SIZE = 500


class Overlaps(NamedTuple):
    """Rows of a file that were sent before or are planned: pairs of a line and an entry or a batch.

    `done`: this account has done the row, not under a different run key. `repeated`: this account has done it under
    a different run key. `unknown`: its outcome is unknown. `other`: perhaps a different account has done it, its id
    is spelled differently, or its escrow got a different once-only write. `planned`: an unfinished batch plans it.
    """

    done: list[tuple[int, Entry]]
    repeated: list[tuple[int, Entry]]
    unknown: list[tuple[int, Entry]]
    other: list[tuple[int, Entry]]
    planned: list[tuple[int, Batch]]


def find_overlaps(journal: Journal, checked: CheckedFile, service: Service, run_key: str | None) -> Overlaps:
    """Return the rows of a file that were sent before, by a batch or a single command, or that a batch still plans.

    If `run_key` is None, rows that were done under any run key are in `done`, not in `repeated`.
    """
    found = Overlaps([], [], [], [], _find_planned(journal, checked, service))
    hashes = checked.hashed_keys
    pages = iter(lambda: list(islice(hashes, _PAGE_SIZE)), [])
    if checked.has_keys and not any(journal.has_any(page) for page in pages):
        return found
    rows = checked.iterate_with_keys()
    while page := list(islice(rows, _PAGE_SIZE)):
        template = _make_row_intent(checked.kind, page[0][0], service)
        intents = [(row.line, _replace_key(template, key)) for row, key in page]
        # A row without a reference may repeat an unknown create that has none either.
        intents += [(row.line, _make_row_intent(checked.kind, row, service)) for row, _ in page if row.key is None]
        overlaps = journal.find_possible_repeats([intent for _, intent in intents])
        for (line, intent), entries in zip(intents, overlaps, strict=True):
            for entry in entries:
                _choose_list(found, intent, entry, run_key).append((line, entry))
    return found


def _choose_list(found: Overlaps, intent: Intent, entry: Entry, run_key: str | None) -> list[tuple[int, Entry]]:
    if entry.state in OPEN_STATES:
        return found.unknown
    is_same_write = entry.intent.operation == intent.operation and intent.has_same_id(entry.intent)
    if (intent.is_once_only and not is_same_write) or not intent.account.is_same(entry.intent.account):
        return found.other
    return found.done if run_key is None or entry.intent.run_key in (None, run_key) else found.repeated


def _find_planned(journal: Journal, checked: CheckedFile, service: Service) -> list[tuple[int, Batch]]:
    """Return the line and the batch of each row that an unfinished batch still has to send."""
    planned: dict[int, Batch] = {}
    kind = checked.kind
    for batch in list_batches(journal):
        if batch.dropped or batch.kind is not kind or not batch.is_for(service):
            continue
        hashes = (kind.hash_key(row.key) for row in list_unsent(journal, batch, service) if row.key is not None)
        planned |= dict.fromkeys(filter(checked.has_hashed_key, hashes), batch)
    keys = ((row.line, kind.hash_key(row.key)) for row in (checked if planned else ()) if row.key is not None)
    return [(line, planned[key]) for line, key in keys if key in planned]


def _make_row_intent(kind: RowKind, row: RowContent, service: Service) -> Intent:
    return make_intent(service, make_request(kind, row, service), "")


def _replace_key(template: Intent, key: str) -> Intent:
    if template.is_once_only:
        return template._replace(resource_id=key, fingerprint=key)
    return template._replace(reference=key)
