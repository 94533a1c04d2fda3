"""A line of stderr that stays open: drawn again and again, and erased by the next line."""

import contextlib
import os
from typing import TextIO

from escrowctl.runtime import takes_text

_USUAL_WIDTH = 80
_ERASE = "\r\x1b[K"


class DrawnLine:
    """What is drawn on a terminal now.

    Nothing is drawn or erased while the terminal takes no text (Ctrl-S): to wait for it would hold up the
    request that the text is about.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = False

    def draw(self, text: str) -> None:
        """Put a text, made safe, in the place of the last one."""
        if not takes_text(self._stream):
            return
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            width = _USUAL_WIDTH
        self._is_drawn = True
        # A text that fills the line would begin the next one, where nothing takes it back.
        self._write(f"\r{text[: width - 1]}\x1b[K")

    def erase(self) -> None:
        """Erase what is drawn, if anything; where the terminal takes no text now, the next text erases it."""
        if self._is_drawn and takes_text(self._stream):
            self.make_room()

    def make_room(self) -> None:
        """Erase what is drawn, if anything, for a text that is written next."""
        if self._is_drawn:
            self._is_drawn = False
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
