"""A terminal that records what it receives, text that would harm it, and a service that sends such text."""

import json
import os
import pty
import random
import re
import threading
import tty
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from conftest import KEY, Run, Terminal
from wire_server import WireServer, http_reply

CONTROLS = {*range(0x20), 0x7F, *range(0x80, 0xA0)} - {0x0A}
BIDI = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
ZERO_WIDTH = {0x00AD, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2066), 0xFEFF, *range(0xFFF9, 0xFFFC)}
LINE_ENDS = {0x2028, 0x2029}
TAGS = {0xE0001, *range(0xE0020, 0xE0080)}
HARMFUL = CONTROLS | BIDI | ZERO_WIDTH | LINE_ENDS | TAGS
UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x180E), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0}
"""Default_Ignorable_Code_Point (Unicode, DerivedCoreProperties) that Python calls printable."""

PIECES = (
    *("\x1b[2J", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]52;c;cm0gLXJm\x07", "\x1b]8;;http://evil\x1b\\\\here"),
    *("\x1bP$q\x1b\\", "\x1b(0", "\x1bc", "\x1b", "\x9b2J", "\x9d0;title\x9c", "\x90", "\x85", "\x80", "\x9f"),
    *("\r", "\n", "\r\n", "\t", "\x00", "\x07", "\x08\x08\x08", "\x0b", "\x0c", "\x0e", "\x7f", "\u2028", "\u2029"),
    *("\u202e", "\u202dx\u202c", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u200b", "\u200d", "\u2060"),
    *("\ufeff", "\u00ad", "\u180e", "\ufff9", "\U000e0041", "\U000e0001"),
    *("[/foo]", "[bold]", "[/]", "[link=http://evil]x[/link]", "[red on", "[@click=app.quit]", r"\[", "[[", ":smile:"),
    *("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", '=HYPERLINK("http://evil")'),
    *("released", "tx_1", "  id  tx_2", "{{x}}", "%s%n", "$(id)", "`id`", "'; DROP", "../..", "a" * 300, "漢字" * 40),
    *("\u0301" * 50, "e\u0301", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea", "\uff1d1", "\ud7ff\ue000"),
    *("\U0010ffff", "\ufffe", "\ufdd0", "\u0600", "\u3000", "\u00a0", "\u1680", " ", "", "\N{ZERO WIDTH NON-JOINER}"),
)  # fmt: skip


def hostile(chance: random.Random) -> str:
    """Return a string of one to four harmful pieces, or of code points from anywhere."""
    if chance.random() < 0.2:
        return "".join(any_point(chance) for _ in range(chance.randrange(1, 12)))
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 5)))


def any_point(chance: random.Random) -> str:
    low, high = chance.choice(((0, 0xA0), (0x300, 0x3000), (0xE000, 0x11000), (0xE0000, 0xE0200)))
    return chr(chance.randrange(low, high))


@dataclass
class PseudoTerminal:
    """A pty: what is written to `stream` is what a terminal would have received."""

    columns: int = 100
    received: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._ours, theirs = pty.openpty()
        tty.setraw(theirs)  # else the line discipline would add a carriage return to each line
        self.stream: TextIO = os.fdopen(theirs, "w", encoding="utf-8", errors="surrogatepass", newline="")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.received += data

    def close(self) -> str:
        self.stream.close()
        self._reader.join(20)
        os.close(self._ours)
        return self.received.decode("utf-8")


@dataclass
class Service:
    """Answers every request with one reply that the test sets, and writes with another one if it is set."""

    server: WireServer
    replies: list[bytes]
    writes: list[bytes]
    run: Run
    home: Path

    def show(self, *line: str, color: str = "never", typed: str = "") -> tuple[int, str]:
        """Run a line at a pty, stdout and stderr together, and return its exit code and what arrived."""
        from escrowctl.main import main
        from escrowctl.runtime import Runtime

        pseudo_terminal = PseudoTerminal()
        environ = {**os.environ, **self.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
        around = Runtime(
            environ=environ,
            stdin=Terminal(typed),
            stdout=pseudo_terminal.stream,
            stderr=pseudo_terminal.stream,
            sleep=lambda _seconds: None,
        )
        return int(main(["--color", color, *line], around)), pseudo_terminal.close()

    def tell(self, *line: str) -> Any:
        """Run a line with --json in a pipe, and return the document."""
        result = self.run(*line, "--json", environ=self.environ)
        assert result.code == 0, result.err
        assert result.out.isascii()
        return result.json

    @property
    def environ(self) -> dict[str, str]:
        return {"ESCROWCTL_BASE_URL": self.server.base_url, "ESCROWCTL_API_KEY": KEY}

    def answer(self, document: object, status: str = "200 OK", *headers: str, ascii_only: bool = True) -> None:
        self.replies[:] = [reply_of(document, status, *headers, ascii_only=ascii_only)]

    def answer_writes(self, document: object, status: str = "200 OK") -> None:
        self.writes[:] = [reply_of(document, status)]


def reply_of(document: object, status: str, *headers: str, ascii_only: bool = True) -> bytes:
    """Return a reply that spells its text as escapes, or as the bytes themselves: both mean the same."""
    return http_reply(status, json.dumps(document, ensure_ascii=ascii_only).encode("utf-8"), *headers)


def harm_in(shown: str, *, styled: bool = False) -> set[str]:
    """Return the harmful characters in what a terminal received; `styled`: without the colours that escrowctl adds."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown) if styled else shown
    return {f"U+{ord(char):04X}" for char in text if ord(char) in HARMFUL}
