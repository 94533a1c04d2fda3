"""The head of the chain, stored in a file next to the journal.

An older copy of a journal has an intact chain: only a head stored elsewhere shows that records are
missing. The file is created before the first record. Then it is written after each commit and not
synced: it may lag one commit behind, or more after a power failure; it is never ahead of the journal.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from escrowctl.files import TooLargeError, open_regular, read_regular, replace_durably
from escrowctl.journal.chain import Head

_LENGTH = 15 + 36 + 1 + 20 + 1 + 64 + 1


class UnreadableHeadError(Exception):
    """The file does not contain a head."""


class SavedHead(NamedTuple):
    """A head, and the id of its journal."""

    journal_id: str
    head: Head


class HeadFile:
    """The file. It is created before the first record."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def replace(self, journal_id: str, head: Head) -> None:
        """Write the head as a new file, durably and in one step, so that the file is never empty.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE`; then the old file is still there.
        """
        replace_durably(self.path, _line(journal_id, head), private=True)

    def update(self, journal_id: str, head: Head) -> None:
        """Write the head in place, as one line of fixed length. An OSError is ignored: the file then only lags."""
        with contextlib.suppress(OSError):
            handle = open_regular(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, _line(journal_id, head).encode(), 0)
            finally:
                os.close(handle)

    def read(self) -> SavedHead | None:
        """Return the saved head. None: the file is missing. Raises UnreadableHeadError or OSError."""
        try:
            content, _ = read_regular(self.path, limit=_LENGTH, follow=False)
        except FileNotFoundError:
            return None
        except TooLargeError as error:
            raise UnreadableHeadError from error
        line = content.decode("ascii", "replace")
        try:
            _, journal_id, sequence, digest = line.split()
            saved = SavedHead(journal_id, Head(int(sequence), digest))
        except ValueError:
            raise UnreadableHeadError from None
        if len(line) != _LENGTH or _line(*saved) != line:
            raise UnreadableHeadError
        return saved


def _line(journal_id: str, head: Head) -> str:
    return f"escrowctl-head {journal_id} {head.sequence:020d} {head.digest}\n"
