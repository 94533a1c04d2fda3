"""The head of the chain, kept in a file beside the journal.

An older copy of a journal has an intact chain: only what is kept elsewhere shows that records are
missing. Written after each commit and not synced, it may lag one commit behind, or more after a
power failure; it is never ahead of a journal that is whole.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

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
    """The file; missing or empty, it knows nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, kept: KeptHead) -> None:
        """Write the head in place, one line of fixed length; a file that cannot be written only lags."""
        line = f"escrowctl-head {kept.journal_id} {kept.head.sequence:020d} {kept.head.digest}\n".encode()
        assert len(line) == _LENGTH, "one length, so that a shorter write never leaves two lines mixed"
        with contextlib.suppress(OSError):
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                # Whatever the umask took away when the file was made.
                os.fchmod(handle, 0o600)
                os.pwrite(handle, line, 0)
            finally:
                os.close(handle)

    def read(self) -> KeptHead | None:
        """Return what was kept, None where nothing was; raises `UnreadableHeadError`, or OSError."""
        try:
            text = self.path.read_bytes()[: _LENGTH + 1].decode("ascii", "replace")
        except FileNotFoundError:
            return None
        if not text:
            return None
        found = _LINE.fullmatch(text)
        if found is None:
            raise UnreadableHeadError
        return KeptHead(found[1], Head(int(found[2]), found[3]))
