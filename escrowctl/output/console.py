"""The console: the only module that writes. Data to stdout, everything else to stderr."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Invocation, OutputClosedError
from escrowctl.output.plain import fold, render_csv, render_rows, safe
from escrowctl.runtime import takes_text

# Formats are imported by the methods that use them: help and usage errors do not pay for them.
if TYPE_CHECKING:
    from datetime import datetime

    from escrowctl.contract.json import JsonValue
    from escrowctl.options import SharedOptions
    from escrowctl.output.view import Listing, View


_MIN_WIDTH, _USUAL_WIDTH = 40, 80
_PLAIN = Invocation("escrowctl")
_SHOWN_SECONDS = 1.0
"""Waits are drawn from this length on."""
_RED, _RESET = "\x1b[1;31m", "\x1b[0m"


class Console:
    """Writes the output of one run. Every method that writes data raises OutputClosedError if the pipe is closed,
    and EscrowctlError `OUTPUT_UNUSABLE` if stdout cannot be written. `keys` returns the known API keys: no output
    on stderr contains one.
    """

    def __init__(
        self,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str],
        options: "SharedOptions",
        *,
        now: "Callable[[], datetime]",
        keys: "Callable[[], Iterable[str]]" = tuple,
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._environ = environ
        self._now = now
        self._keys = keys
        self._options = options
        self._said: set[str] = set()
        self._widths: tuple[int, ...] = ()
        self._is_csv_begun = False
        self._is_drawn = False
        for stream in (stdout, stderr):
            if isinstance(stream, TextIOWrapper):
                # A character that the encoding lacks is shown by its code; it must not cause a traceback.
                stream.reconfigure(errors="backslashreplace")

    def show(self, view: "View") -> None:
        """Show one view in the format of this run. If it is a list, columns show the fields of each item."""
        from escrowctl.output.view import Listing

        options, fields = self._options, self._options.fields
        has_columns = bool(fields) or options.table or options.csv
        if has_columns and view.items is not None and not view.holds(fields):
            self.show_listing(Listing(fields or tuple(view.named), view.items))
        elif self._options.quiet:
            self._show_bare((view,))
        else:
            self._show(view.only(fields) if fields and view.named else view)

    def show_listing(self, listing: "Listing") -> None:
        """Show several views: an array, a table, or lines."""
        if self._options.quiet:
            self._show_bare(listing.views)
            return
        if self._options.fields:
            listing = listing.only(self._options.fields)
        if self._options.json or self._options.raw:
            views = [view.document for view in listing.views]
            self._show_document(views if listing.document is None else listing.document)
        elif self._options.csv:
            self._show_csv(listing.columns, listing.views)
        elif not listing.views:
            if self._has_table:
                self.note("none", "nothing was found")
        elif self._has_table:
            text, hidden = self._render_listing(listing, color=self._colors(self._stdout))
            self.data(text)
            if hidden:
                lacking = f"a line of {self._width} characters has no room for these columns: {', '.join(hidden)}"
                self.note("hidden", f"{lacking}. Use --fields, --csv or --json")
        else:
            self.data(render_rows(view.row(listing.columns) for view in listing.views))

    def table_lines(self, listing: "Listing") -> list[str]:
        """Return several views as the lines of a table, for use in a question."""
        return self._render_listing(listing, color=False)[0].splitlines()

    def show_line(self, view: "View") -> None:
        """Show one of several views that arrive one by one.

        At a terminal the first has a header above it. It decides the widths of the columns, because
        those of the later views are not known yet.
        """
        if self._options.quiet:
            self._show_bare((view,))
            return
        if self._options.fields:
            view = view.only(self._options.fields)
        if self._options.json or self._options.raw:
            self.document(view.document)
        elif self._options.csv:
            self._show_csv(tuple(view.named), (view,))
        elif not self._has_table:
            self.data(render_rows([view.row(tuple(view.named))]))
        elif view.line is not None:
            self.data(fold(safe(view.line), self._width))
        else:
            from escrowctl.output.terminal import render_row

            colors = self._colors(self._stdout)
            header, row, self._widths = render_row(view, self._widths, self._now(), color=colors)
            self.data(f"{header}\n{row}" if header else row)

    def document(self, document: "JsonValue") -> None:
        """Write one line of JSON."""
        self.data(_json(document))

    def page(self, text: str) -> None:
        """Write a text of escrowctl, such as help; under `--json` a JSON string."""
        if self._options.json:
            self.document(text)
        else:
            self.data(text)

    def text(self, body: bytes) -> None:
        """Write a reply that is not JSON: unchanged in a pipe, harmless at a terminal."""
        text = body.decode("utf-8", errors="replace")
        if self._options.json:
            self.document(text)
        elif self._stdout.isatty():
            self.data("\n".join(safe(line) for line in text.splitlines()))
        else:
            self.data(text.removesuffix("\n"))

    def data(self, text: str) -> None:
        """Write text and a line end to stdout, and flush."""
        self._make_room()
        try:
            self._stdout.write(text + "\n")
            self._stdout.flush()
        except BrokenPipeError as error:
            self._drop(self._stdout)
            raise OutputClosedError from error
        except OSError as error:
            self._drop(self._stdout)
            raise EscrowctlError(
                ErrorCode.OUTPUT_UNUSABLE, f"the output could not be written: {error.strerror or error}."
            ) from error

    def note(
        self,
        code: str,
        message: str,
        *,
        word: str = "note",
        important: bool = False,
        hints: tuple[Hint, ...] = (),
        invocation: Invocation = _PLAIN,
    ) -> None:
        """Write a note on stderr, once a run, with hints like an error. `-q` hides notes that are not important."""
        message = self._starred(message)
        if (self._options.quiet and not important) or message in self._said:
            return
        self._said.add(message)
        self._say_note(code, message, word=word, hints=hints, invocation=invocation)

    def warn(self, code: str, message: str) -> None:
        """Write a warning on stderr, once a run, under `-q` too."""
        self.note(code, message, word="warning", important=True)

    @property
    def can_draw(self) -> bool:
        """Whether a line can be drawn and erased: a person reads stderr at a terminal with a cursor."""
        is_for_program = self._options.json or self._options.quiet or self._environ.get("CI")
        return not is_for_program and self._stderr.isatty() and self._environ.get("TERM", "dumb") != "dumb"

    def draw_wait(self, text: str, seconds: float) -> None:
        """Draw the reason of a wait and its length so far, from one second on."""
        if seconds >= _SHOWN_SECONDS and self.can_draw:
            self.draw(f"{text}  {seconds:.0f} s")

    def draw(self, text: str) -> None:
        """Replace the last drawn text by a new one. The next written line erases it.

        While the terminal is stopped (Ctrl-S), nothing is drawn or erased: to wait for it would delay the request
        that the text describes.
        """
        if not takes_text(self._stderr):
            return
        try:
            width = os.get_terminal_size(self._stderr.fileno()).columns
        except (OSError, ValueError):
            width = _USUAL_WIDTH
        self._is_drawn = True
        # A text that fills the line would wrap into the next one, which is never erased.
        self._write_error(f"\r{safe(self._starred(text))[: width - 1]}\x1b[K")

    def erase(self) -> None:
        """Erase the drawn text, if any. If the terminal takes no text now, the next text erases it."""
        if self._is_drawn and takes_text(self._stderr):
            self._make_room()

    def trace(self, message: str) -> None:
        """Write a line about a request or reply, under `-v` and `--debug`."""
        if self._options.verbose or self._options.debug:
            self._say_note("trace", self._starred(message))

    def error(self, error: EscrowctlError, invocation: Invocation) -> None:
        """Write an error with its hints. A hint's command starts with `invocation`."""
        from escrowctl.output.errors import error_document, error_lines, star_error

        for key in self._keys():
            error = star_error(error, key)
        invocation = Invocation(*map(self._starred, invocation))
        if self._options.json:
            self._say(_json(error_document(error, invocation)))
            return
        first, *others = error_lines(error, invocation, raw=self._options.raw, width=self._error_width)
        word, _, rest = first.partition(":")
        colored = f"{_RED}{word}:{_RESET}{rest}" if self._colors(self._stderr) else first
        self._say("\n".join([colored, *others]))

    def report(self, text: str) -> None:
        """Write a multi-line text, such as a traceback, without API keys."""
        self._say("\n".join(self._starred(line) for line in text.split("\n")))

    def ask(self, lines: list[str]) -> None:
        """Write the lines of a question, and a prompt for the answer."""
        for line in lines:
            self._say(safe(self._starred(line)))
        self._write_error("> ")

    def close(self) -> None:
        """Drop a stream that cannot be flushed: the interpreter's last flush would end the process with code 120."""
        self._make_room()
        for stream in (self._stdout, self._stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                self._drop(stream)

    def _show(self, view: "View") -> None:
        options = self._options
        if options.json or options.raw or (view.whole and not (options.table or options.csv)):
            self._show_document(view.document)
        elif options.csv:
            names, values = zip(*view.fields, strict=True)
            self.data("\n".join(render_csv(names, [values])))
        elif not self._has_table:
            self.data(render_rows(view.fields))
        elif view.line is not None:
            self.data(safe(view.line))
        else:
            from escrowctl.output.terminal import render_fields

            self.data(render_fields(view, now=self._now(), width=self._width, color=self._colors(self._stdout)))

    def _render_listing(self, listing: "Listing", *, color: bool) -> tuple[str, tuple[str, ...]]:
        from escrowctl.output.terminal import render_listing

        return render_listing(listing, now=self._now(), width=self._width, color=color)

    def _show_document(self, document: "JsonValue") -> None:
        """Write JSON; for a person, one value a line."""
        if self._stdout.isatty() and not self._options.json:
            self.data(_json(document, indent=0))
        else:
            self.document(document)

    def _show_csv(self, columns: tuple[str, ...], views: "tuple[View, ...]") -> None:
        """Write rows; before the first ones, write the header."""
        lines = list(render_csv(columns, (view.row(columns) for view in views)))
        self.data("\n".join(lines[self._is_csv_begun :]))
        self._is_csv_begun = True

    @property
    def _has_table(self) -> bool:
        return self._options.table or self._stdout.isatty()

    def _show_bare(self, views: "tuple[View, ...]") -> None:
        """Write the output of `-q`: one line of values for each view with chosen fields, else each id."""
        fields = self._options.fields
        rows = [
            row
            for view in views
            for row in ([view.only(fields).row(fields)] if fields and view.named else [(each,) for each in view.ids])
        ]
        if rows:
            self.data(render_rows(rows))

    def _starred(self, text: str) -> str:
        from escrowctl.contract.redaction import star

        for key in self._keys():
            text = star(text, key)
        return text

    def _say_note(
        self, code: str, message: str, *, word: str = "", hints: tuple[Hint, ...] = (), invocation: Invocation = _PLAIN
    ) -> None:
        if not (self._options.json or hints):
            self._say(f"{word}: {safe(message)}" if word else safe(message))
            return
        from escrowctl.output.errors import marked_hints, note_document

        hints = tuple(hint._replace(text=self._starred(hint.text)) for hint in hints)
        if self._options.json:
            self._say(_json(note_document(code, message, hints, invocation)))
        else:
            self._say("\n".join([f"{word}: {safe(message)}", *marked_hints(hints, invocation, self._error_width)]))

    @property
    def _error_width(self) -> int | None:
        return self._width if self._stderr.isatty() else None

    def _say(self, text: str) -> None:
        self._make_room()
        self._write_error(text + "\n")

    def _make_room(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write_error("\r\x1b[K")

    def _write_error(self, text: str) -> None:
        # If stderr is closed, the failure cannot be reported anywhere.
        with contextlib.suppress(OSError, ValueError):
            self._stderr.write(text)
            self._stderr.flush()

    @property
    def _width(self) -> int:
        return max(shutil.get_terminal_size().columns, _MIN_WIDTH)

    def _colors(self, stream: TextIO) -> bool:
        """`--color`, then NO_COLOR (no-color.org), then FORCE_COLOR, then the terminal."""
        environ = self._environ
        if self._options.color != "auto":
            return self._options.color == "always"
        if environ.get("NO_COLOR"):
            return False
        if environ.get("FORCE_COLOR", "0") != "0":
            return True
        return stream.isatty() and environ.get("TERM") != "dumb"

    def _drop(self, stream: TextIO) -> None:
        """Redirect a dead stream to os.devnull, so that the interpreter's last flush does not fail."""
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _json(document: "JsonValue", *, indent: int | None = None) -> str:
    from escrowctl.contract.json import encode

    return encode(document, spaced=True, indent=indent)
