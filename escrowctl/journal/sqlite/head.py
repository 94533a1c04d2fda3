"""The head of the chain, stored in a file next to the journal.

An older copy of a journal has a valid chain: only a separately stored head shows that records are missing.
The head file is created before the first record. After each commit it is updated, but not synced. It may be
one commit behind the journal, or more after a power failure. It is never ahead of the journal.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from escrowctl.files import TooLargeError, open_regular, read_regular, replace_durably
from escrowctl.journal.chain import Head

_LINE_LENGTH = 15 + 36 + 1 + 20 + 1 + 64 + 1


class UnreadableHeadError(Exception):
    """The head file does not contain a valid head."""


class SavedHead(NamedTuple):
    """The content of the head file: a head, and the id of its journal."""

    journal_id: str
    head: Head


class HeadFile:
    """The file next to a journal that contains the journal's head."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
        """Return the saved head. None: the file is missing. Raises UnreadableHeadError or OSError."""
        try:
            content, _ = read_regular(self.path, limit=_LINE_LENGTH, follow=False)
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
        if len(line) != _LINE_LENGTH or _format_line(*saved) != line:
            raise UnreadableHeadError
        return saved


def _format_line(journal_id: str, head: Head) -> str:
    return f"escrowctl-head {journal_id} {head.sequence:020d} {head.digest}\n"
