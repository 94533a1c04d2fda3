"""Check a journal: its chain, the data derived from it, and the heads stored elsewhere.

The check finds accidents and careless edits. Anyone with write access to the file can also write a valid
chain. Only a head that was stored elsewhere (`journal export --head`) shows such a change.
"""

from collections.abc import Callable
from typing import NamedTuple

from escrowctl.errors import EscrowctlError
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, Head
from escrowctl.journal.storage import Storage
from escrowctl.journal.transfer import read_chain
from escrowctl.journal.witness import Witness, find_mismatch


class Verification(NamedTuple):
    """How many entries were checked, the last checked head, and the first problem or None.

    `is_partial`: the time was over before everything was checked.
    """

    entries: int
    head: Head
    problem: str | None
    is_partial: bool


def verify(
    storage: Storage,
    witness: Witness,
    *,
    expected: Head | None = None,
    is_time_over: Callable[[], bool] = lambda: False,
) -> Verification:
    """Check a copy of the journal, taken at one moment: other processes can write while it is checked.

    `expected` is a head that the journal must still contain. When `is_time_over` returns True, the check ends
    early. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` only if the journal cannot be read at all.
    """
    # Check the saved head before copying: records written in between only put the chain ahead of it.
    lost = witness.find_problem(storage)
    with storage.snapshot() as frozen:
        head, entries, problem = _walk_chain(frozen, is_time_over)
        is_partial = is_time_over()
        problem = problem or lost
        if problem is None and expected is not None:
            with frozen.reading() as view:
                problem = find_mismatch(view, expected, head)
        if problem is None and not is_partial:
            try:
                problem = frozen.find_damage()
            except EscrowctlError as error:
                problem = error.message.rstrip(".")
    return Verification(entries, head, problem, is_partial)


def _walk_chain(storage: Storage, is_time_over: Callable[[], bool]) -> tuple[Head, int, str | None]:
    head, entries = EMPTY_HEAD, set[int]()
    for record in read_chain(storage):
        if is_time_over():
            break
        if not record.follows(head):
            return head, len(entries - {NO_ENTRY}), f"record {head.sequence + 1} is missing or was changed"
        head = record.head
        entries.add(record.entry)
    return head, len(entries - {NO_ENTRY}), None
