"""A progress line on stderr: redrawn in place, and erased before the next line."""

import contextlib
import os
from typing import TextIO

from escrowctl.runtime import takes_text

_USUAL_WIDTH = 80
_ERASE = "\r\x1b[K"


class DrawnLine:
    """The text now drawn on a terminal, without a line end.

    While the terminal is stopped (Ctrl-S), nothing is drawn or erased: to wait for it would delay the request
    that the text describes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = False

    def draw(self, text: str) -> None:
        """Replace the last text by this one, which must be `safe` already."""
        if not takes_text(self._stream):
            return
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            width = _USUAL_WIDTH
        self._is_drawn = True
        # A text that fills the line would wrap into the next one, which is never erased.
        self._write(f"\r{text[: width - 1]}\x1b[K")

    def erase(self) -> None:
        """Erase the drawn text, if any. If the terminal takes no text now, the next text erases it."""
        if self._is_drawn and takes_text(self._stream):
            self.make_room()

    def make_room(self) -> None:
        """Erase the drawn text, if any, because other text is written next."""
        if self._is_drawn:
            self._is_drawn = False
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
