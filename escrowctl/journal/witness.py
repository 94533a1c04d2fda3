"""The witness of a journal: a file on this machine with the head that the journal last had.

An older copy of a journal has a valid chain: only a head that is stored elsewhere shows that records are missing.
"""

import contextlib
import os
from typing import NamedTuple

from escrowctl.errors import Reason
from escrowctl.files import TooLargeError, open_regular, read_regular, replace_durably
from escrowctl.journal.chain import EMPTY_HEAD, Head
from escrowctl.journal.storage import JournalPlace, Reading, Storage, unusable

_TRIES = 5
_LENGTH = 15 + 36 + 1 + 20 + 1 + 64 + 1


class SavedHead(NamedTuple):
    """The head in a witness, and the id of its journal."""

    journal_id: str
    head: Head


_UNREADABLE = SavedHead("", EMPTY_HEAD)


class Witness:
    """The saved head of the journal at a place.

    The file is created before the first record. It is updated after each check, and after each commit in a checked
    journal, but not synced. It may be behind the journal, for example after a power failure, but never ahead of it.
    """

    def __init__(self, place: JournalPlace) -> None:
        self._place = place
        self.path = place.head_path

    def refuse_lost_journal(self) -> None:
        """Raise `ErrorCode.JOURNAL_UNUSABLE` if the journal is missing, but its saved head exists."""
        if self._place.exists:
            return
        try:
            has_head = self.path.is_file() and not self.path.is_symlink()
        except OSError as error:
            raise unusable(self._place.location, str(error)) from error
        # Another process may have just created both, the journal first.
        if has_head and not self._place.exists:
            problem = f"it is missing, but {self.path.name} exists: the journal was moved or removed"
            raise unusable(self._place.location, problem, reason=Reason.FILE_MISSING)

    def create(self, storage: Storage) -> None:
        """Create the file for a journal that is shared or has no records. For others, a missing file is an error."""
        if not os.path.lexists(self.path):
            # In a transaction, so that no record is written in between.
            with storage.transaction() as transaction:
                if transaction.head == EMPTY_HEAD or self._place.is_shared:
                    self.replace(storage.journal_id, transaction.head)

    def replace(self, journal_id: str, head: Head) -> None:
        """Replace the file by a new one with this head, durably and in one step: the file is never empty.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE`; then the old file is unchanged.
        """
        replace_durably(self.path, _format_line(journal_id, head), private=True)

    def update(self, journal_id: str, head: Head) -> None:
        """Overwrite the head in the file. An OSError is ignored: the file then has an older head."""
        with contextlib.suppress(OSError):
            handle = open_regular(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, _format_line(journal_id, head).encode(), 0)
            finally:
                os.close(handle)

    def read(self) -> SavedHead | None:
        """Return the saved head. None: no file. Raises `ErrorCode.JOURNAL_UNUSABLE` if the file cannot be read.

        A file that does not contain a head counts as one that does not match any journal.
        """
        try:
            # A read while another process updates the file may get a part of each head: measured on ext4.
            tries = (_parse(read_regular(self.path, limit=_LENGTH, follow=False)[0]) for _ in range(_TRIES))
            return next(filter(None, tries), _UNREADABLE)
        except FileNotFoundError:
            return None
        except TooLargeError:
            return _UNREADABLE
        except OSError as error:
            raise unusable(self._place.location, str(error)) from error

    def find_problem(self, storage: Storage) -> str | None:
        """Return the problem if the saved head is unusable, or the journal contradicts it. None: no problem."""
        # Read the saved head before the chain: a commit in between then only puts the chain ahead of it.
        saved = self.read()
        with storage.reading() as view:
            return self.compare(saved, storage.journal_id, view, view.head)

    def compare(self, saved: SavedHead | None, journal_id: str, view: Reading, head: Head) -> str | None:
        """Return the problem if `saved` contradicts the journal, whose head was `head` when `view` began."""
        name = self.path.name
        if saved is None and head != EMPTY_HEAD:
            # Another process may have just created both.
            saved = self.read()
        if saved is None:
            return None if head == EMPTY_HEAD or self._place.is_shared else f"{name} is missing"
        if saved is _UNREADABLE:
            return f"{name} is damaged, or escrowctl did not write it"
        if saved.journal_id != journal_id:
            return f"{name} belongs to journal {saved.journal_id}, not to this one"
        return find_mismatch(view, saved.head, head)


def find_mismatch(view: Reading, expected: Head, head: Head) -> str | None:
    """Return the problem if the chain, which ends at `head`, does not contain the head `expected`. None: no problem."""
    if expected.sequence > head.sequence:
        return f"the journal has {head.sequence} records but had {expected.sequence}: it is an older copy, or was cut"
    return None if view.contains(expected) else f"record {expected.sequence} is not the saved one"


def _parse(content: bytes) -> SavedHead | None:
    line = content.decode("ascii", "replace")
    try:
        _, journal_id, sequence, digest = line.split()
        saved = SavedHead(journal_id, Head(int(sequence), digest))
    except ValueError:
        return None
    return saved if len(line) == _LENGTH and _format_line(*saved) == line else None


def _format_line(journal_id: str, head: Head) -> str:
    return f"escrowctl-head {journal_id} {head.sequence:020d} {head.digest}\n"
