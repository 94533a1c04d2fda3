"""The head of the chain, stored in a file next to the journal.

An older copy of a journal has an intact chain: only what is stored elsewhere shows that records are
missing. The file is created before the first record. Then it is written after each commit and not
synced: it may lag one commit behind, or more after a power failure; it is never ahead of the journal.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from escrowctl.config.replacing import replace_file
from escrowctl.files import TooLargeError, open_regular, read_regular
from escrowctl.journal.chain import Head

_LINE = re.compile(r"escrowctl-head ([0-9a-f-]{36}) ([0-9]{20}) ([0-9a-f]{64})\n", re.ASCII)
_LENGTH = 15 + 36 + 1 + 20 + 1 + 64 + 1


class UnreadableHeadError(Exception):
    """The file holds something else than a head."""


@dataclass(frozen=True, slots=True)
class KeptHead:
    """A head, and the id of the journal that it is of."""

    journal_id: str
    head: Head


class HeadFile:
    """The file: it exists from before the first record on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_there(self) -> bool:
        """Whether anything is there, readable or not."""
        return os.path.lexists(self.path)

    def replace(self, kept: KeptHead) -> None:
        """Write the head as a new file, durably and in one step: at no moment is it empty.

        Raises EscrowctlError (`ErrorCode.STATE_UNUSABLE`); then what was there is still there.
        """
        replace_file(self.path, _line(kept), private=True)

    def keep(self, kept: KeptHead) -> None:
        """Write the head in place, one line of fixed length; a file that cannot be written only lags."""
        with contextlib.suppress(OSError):
            handle = open_regular(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, _line(kept).encode(), 0)
            finally:
                os.close(handle)

    def read(self) -> KeptHead | None:
        """Return what is stored, None where the file is missing; raises `UnreadableHeadError`, or OSError."""
        try:
            content, _ = read_regular(self.path, limit=_LENGTH, follow=False)
        except FileNotFoundError:
            return None
        except TooLargeError as error:
            raise UnreadableHeadError from error
        found = _LINE.fullmatch(content.decode("ascii", "replace"))
        if found is None:
            raise UnreadableHeadError
        return KeptHead(found[1], Head(int(found[2]), found[3]))


def _line(kept: KeptHead) -> str:
    line = f"escrowctl-head {kept.journal_id} {kept.head.sequence:020d} {kept.head.digest}\n"
    assert len(line) == _LENGTH, "one length, so that a shorter write never leaves two lines mixed"
    return line
