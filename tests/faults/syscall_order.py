"""The order in which a command syncs its journal and sends: kill -9 does not show what a power failure loses.

strace tells every call on the journal's folder and every byte handed to a socket. When a write's
first byte goes out, nothing of the journal may be waiting for a sync, and its idempotency key must
be in a page of journal.db that was synced.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from faults.kills import Violation, ViolationError

_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_FILE = re.compile(r"\d+<([^>]*)>")
_WRITE = re.compile(r'"(?:POST|PUT|PATCH|DELETE) /')
_KEY = re.compile(r"Idempotency-Key: ([^\\]+)", re.IGNORECASE)
_PAGE = 4096
_SENDS = ("sendto", "sendmsg", "write", "writev")
_CALLS = ("openat", "pwrite64", "pwritev", "write", "writev", "ftruncate", "fdatasync", "fsync", "sendto", "sendmsg")


def tracing_order(log: Path) -> list[str]:
    """Return what to run a program under, so that `log` tells what it wrote, synced and sent."""
    return ["strace", "-f", "-qq", "-y", "-s", str(_PAGE), "-o", str(log), "-e", "trace=" + ",".join(_CALLS)]


@dataclass
class SyscallOrder:
    """Reads a log; raises ViolationError where something was sent too soon. `sent` counts the writes sent."""

    state: Path
    sent: int = 0
    _written: str = ""
    _durable: str = ""
    _dirty: set[str] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._kept = {str(self.state / name) for name in ("journal.db", "journal.db-journal")}
        self._known |= {str(path) for path in self.state.glob("journal.*")}

    def read(self, log: Path) -> None:
        for line in log.read_text(errors="replace").splitlines():
            found = _CALL.match(line)
            if found is not None:
                self._follow(found[1], found[2])

    def _follow(self, call: str, words: str) -> None:
        file = _FILE.match(words)
        path = file[1] if file else ""
        if call == "openat":
            self._open(words)
        elif call in ("fdatasync", "fsync"):
            self._dirty.discard(path)
            if path.endswith("journal.db"):
                self._durable, self._written = self._durable + self._written, ""
        elif path in self._kept:
            self._dirty.add(path)
            self._written += words if path.endswith("journal.db") else ""
        elif call in _SENDS and _WRITE.search(words):
            self._send(words)

    def _open(self, words: str) -> None:
        """A file that is made is in its folder for good once the folder is synced."""
        made = re.search(r'"([^"]*)", [^)]*O_CREAT', words)
        if made is not None and made[1] in self._kept - self._known and "= -1" not in words:
            self._known.add(made[1])
            self._dirty.add(str(self.state))

    def _send(self, words: str) -> None:
        if self._dirty:
            raise ViolationError(Violation.NO_INTENT, f"{words[:60]} left before a sync of {sorted(self._dirty)}")
        key = _KEY.search(words)
        if key is None or key[1] not in self._durable:
            raise ViolationError(Violation.NO_INTENT, f"{words[:60]} left, and no synced page holds its key")
        self.sent += 1
