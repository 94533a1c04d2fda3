"""The console, which writes the output of commands: data to stdout, everything else to stderr."""

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Invocation, OutputClosedError
from escrowctl.output.plain import fold_line, render_csv, render_rows, safe
from escrowctl.runtime import Clock, is_writable_now

# Formats are imported by the methods that use them: help and usage errors do not pay for them.
if TYPE_CHECKING:
    from escrowctl.contract.json import JsonValue
    from escrowctl.options import SharedOptions
    from escrowctl.output.view import Listing, View

_MIN_WIDTH, _DEFAULT_WIDTH = 40, 80
_RED, _RESET = "\x1b[1;31m", "\x1b[0m"


class Console:
    """Writes the output of one run. Methods that write to stdout raise OutputClosedError if its reader is gone, and
    EscrowctlError `OUTPUT_UNUSABLE` if stdout cannot be written.

    `find_invocation` returns the start of commands in hints. `star` returns a JSON value with stars in place of the
    known API keys: everything on stderr passes it.
    """

    def __init__(
        self,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str],
        options: "SharedOptions",
        *,
        now: Clock,
        find_invocation: "Callable[[], Invocation]",
        star: "Callable[[JsonValue], JsonValue]",
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._environ = environ
        self._now = now
        self._find_invocation = find_invocation
        self._star = star
        self._options = options
        self._written_notes: set[str] = set()
        self._widths: tuple[int, ...] = ()
        self._has_csv_header = False
        self._has_drawn_text = False
        for stream in (stdout, stderr):
            if isinstance(stream, TextIOWrapper):
                # A character that the encoding lacks is shown by its code; it must not cause a traceback.
                stream.reconfigure(errors="backslashreplace")

    def show(self, view: "View") -> None:
        """Show one view in the format of this run. Formats with columns show the items of a list."""
        from escrowctl.output.view import Listing

        options, fields = self._options, self._options.fields
        if (fields or options.table or options.csv) and view.items is not None and not view.has_value_at(fields):
            self.show_listing(Listing(fields or tuple(view.named), view.items))
        elif self._options.quiet:
            self._show_ids_or_fields((view,))
        else:
            self._show_one(view.select_fields(fields) if fields and view.named else view)

    def show_listing(self, listing: "Listing") -> None:
        """Show several views as a JSON array, CSV, a table, or lines."""
        if self._options.quiet:
            self._show_ids_or_fields(listing.views)
            return
        if self._options.fields:
            listing = listing.only(self._options.fields)
        if self._options.json or self._options.raw:
            views = [view.document for view in listing.views]
            self._show_document(views if listing.document is None else listing.document)
        elif self._options.csv:
            self._show_csv(listing.columns, listing.views)
        elif not listing.views:
            if self._shows_tables:
                self.note("none", "nothing was found")
        elif self._shows_tables:
            text, hidden = self._render_listing(listing, color=self._is_colored(self._stdout))
            self.write_data(text)
            if hidden:
                names = ", ".join(hidden)
                self.note("hidden", f"the terminal is too narrow for: {names}. Use --fields, --csv or --json")
        else:
            self.write_data(render_rows(view.row(listing.columns) for view in listing.views))

    def render_table_lines(self, listing: "Listing") -> list[str]:
        """Return the lines of a table of several views, for use in a question."""
        return self._render_listing(listing, color=False)[0].splitlines()

    def show_line(self, view: "View") -> None:
        """Show one of several views that arrive one by one.

        At a terminal, a header line precedes the first view. The first view also sets the column widths, because
        later views are not known yet.
        """
        if self._options.quiet:
            self._show_ids_or_fields((view,))
            return
        if self._options.fields:
            view = view.select_fields(self._options.fields)
        if self._options.json or self._options.raw:
            self.write_json(view.document)
        elif self._options.csv:
            self._show_csv(tuple(view.named), (view,))
        elif not self._shows_tables:
            self.write_data(render_rows([view.row(tuple(view.named))]))
        elif view.line is not None:
            self.write_data(fold_line(safe(view.line), self._width))
        else:
            from escrowctl.output.terminal import render_row

            colors = self._is_colored(self._stdout)
            header, row, self._widths = render_row(view, self._widths, self._now(), color=colors)
            self.write_data(f"{header}\n{row}" if header else row)

    def write_json(self, document: "JsonValue") -> None:
        """Write a document as one line of JSON."""
        self.write_data(_encode_json(document))

    def write_page(self, text: str) -> None:
        """Write help or another text of escrowctl; under `--json`, as a JSON string."""
        if self._options.json:
            self.write_json(text)
        else:
            self.write_data(text)

    def write_body(self, body: bytes) -> None:
        """Write a reply that is not JSON; on a terminal, with codes in place of invisible characters."""
        text = body.decode("utf-8", errors="replace")
        if self._options.json:
            self.write_json(text)
        elif self._stdout.isatty():
            self.write_data("\n".join(safe(line) for line in text.splitlines()))
        else:
            self.write_data(text.removesuffix("\n"))

    def write_data(self, text: str) -> None:
        """Write text and a line end to stdout, and flush."""
        self._erase_drawn_text()
        try:
            self._stdout.write(text + "\n")
            self._stdout.flush()
        except OSError as error:
            self._redirect_to_devnull(self._stdout)
            if isinstance(error, BrokenPipeError):
                raise OutputClosedError from error
            message = f"the output could not be written: {error.strerror or error}."
            raise EscrowctlError(ErrorCode.OUTPUT_UNUSABLE, message) from error

    def note(
        self, code: str, message: str, *, label: str = "note", important: bool = False, hints: tuple[Hint, ...] = ()
    ) -> None:
        """Write `label`, a message and hints on stderr; each message once a run. `-q` hides unimportant ones."""
        if (self._options.quiet and not important) or message in self._written_notes:
            return
        self._written_notes.add(message)
        self._write_note(code, message, label, hints)

    def warn(self, code: str, message: str) -> None:
        """Write a warning on stderr, even under `-q`; each message once a run."""
        self.note(code, message, label="warning", important=True)

    @property
    def can_draw(self) -> bool:
        """Whether a line can be drawn and erased: a person reads stderr at a terminal with a cursor."""
        is_for_program = self._options.json or self._options.quiet or self._environ.get("CI")
        return not is_for_program and self._stderr.isatty() and self._environ.get("TERM", "dumb") != "dumb"

    def draw_wait(self, text: str, seconds: float) -> None:
        """Draw `text`, the reason of a wait, and the `seconds` waited so far. The first second is not drawn."""
        if seconds >= 1 and self.can_draw:
            self.draw(f"{text}  {seconds:.0f} s")

    def draw(self, text: str) -> None:
        """Draw `text` in place of the last drawn text. The next written line erases the drawn text.

        While the terminal is stopped (Ctrl-S), nothing is drawn or erased: waiting for the terminal would delay the
        request that the text describes.
        """
        if not is_writable_now(self._stderr):
            return
        try:
            width = os.get_terminal_size(self._stderr.fileno()).columns
        except (OSError, ValueError):
            width = _DEFAULT_WIDTH
        self._has_drawn_text = True
        # A text that fills the line would wrap into the next one, which is never erased.
        self._write_to_stderr(f"\r{safe(self._star_text(text))[: width - 1]}\x1b[K")

    def erase(self) -> None:
        """Erase the drawn text, if any. While the terminal is stopped, leave that to the next written line."""
        if self._has_drawn_text and is_writable_now(self._stderr):
            self._erase_drawn_text()

    def trace(self, message: str) -> None:
        """Write a line about a request or reply."""
        self._write_note("trace", message, "", ())

    def error(self, error: EscrowctlError) -> None:
        """Write an error and its hints."""
        from escrowctl.output.errors import format_error, make_error_document

        invocation = self._find_invocation()
        if self._options.json:
            self._write_stderr_lines(_encode_json(self._star(make_error_document(error, invocation))))
            return
        first, *others = format_error(error, invocation, raw=self._options.raw, width=self._stderr_width)
        word, _, message = first.partition(":")
        label = f"{_RED}{word}:{_RESET}" if self._is_colored(self._stderr) else f"{word}:"
        self._write_stderr_lines("\n".join([label + self._star_text(message), *map(self._star_text, others)]))

    def report(self, text: str) -> None:
        """Write a text of several lines to stderr, such as a traceback."""
        self._write_stderr_lines("\n".join(map(self._star_text, text.split("\n"))))

    def write_question(self, lines: list[str]) -> None:
        """Write the lines of a question, and a prompt for the answer."""
        for line in lines:
            self._write_stderr_lines(safe(self._star_text(line)))
        self._write_to_stderr("> ")

    def close(self) -> None:
        """Flush both streams, and redirect a broken one: the interpreter's own flush would exit with code 120."""
        self._erase_drawn_text()
        for stream in (self._stdout, self._stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                self._redirect_to_devnull(stream)

    def _show_one(self, view: "View") -> None:
        options = self._options
        if options.json or options.raw or (view.is_free_form and not (options.table or options.csv)):
            self._show_document(view.document)
        elif options.csv:
            names, values = zip(*view.fields, strict=True)
            self.write_data("\n".join(render_csv(names, [values])))
        elif not self._shows_tables:
            self.write_data(render_rows(view.fields))
        elif view.line is not None:
            self.write_data(safe(view.line))
        else:
            from escrowctl.output.terminal import render_fields

            color = self._is_colored(self._stdout)
            self.write_data(render_fields(view, now=self._now(), width=self._width, color=color))

    def _render_listing(self, listing: "Listing", *, color: bool) -> tuple[str, tuple[str, ...]]:
        from escrowctl.output.terminal import render_listing

        return render_listing(listing, now=self._now(), width=self._width, color=color)

    def _show_document(self, document: "JsonValue") -> None:
        """Write JSON on one line; at a terminal without `--json`, on several lines."""
        if self._stdout.isatty() and not self._options.json:
            self.write_data(_encode_json(document, indent=0))
        else:
            self.write_json(document)

    def _show_csv(self, columns: tuple[str, ...], views: "tuple[View, ...]") -> None:
        """Write views as rows of CSV. The first call also writes the header."""
        lines = list(render_csv(columns, (view.row(columns) for view in views)))
        self.write_data("\n".join(lines[self._has_csv_header :]))
        self._has_csv_header = True

    @property
    def _shows_tables(self) -> bool:
        return self._options.table or self._stdout.isatty()

    def _show_ids_or_fields(self, views: "tuple[View, ...]") -> None:
        """Write the output of `-q`: the ids of the views; under `--fields`, a line with the fields of each view."""
        fields, rows = self._options.fields, list[tuple[str, ...]]()
        for view in views:
            has_fields = fields and view.named
            rows += [view.select_fields(fields).row(fields)] if has_fields else [(each,) for each in view.ids]
        if rows:
            self.write_data(render_rows(rows))

    def _star_text(self, text: str) -> str:
        return str(self._star(text))

    def _write_note(self, code: str, message: str, label: str, hints: tuple[Hint, ...]) -> None:
        if self._options.json:
            from escrowctl.output.errors import align_hints

            hint = "\n".join(align_hints(hints, self._find_invocation()))
            note: JsonValue = {"code": code, "message": message, **({"hint": hint} if hint else {})}
            self._write_stderr_lines(_encode_json(self._star({"note": note})))
            return
        text = safe(self._star_text(message))
        lines = [f"{label}: {text}" if label else text]
        if hints:
            from escrowctl.output.errors import format_hints

            lines += map(self._star_text, format_hints(hints, self._find_invocation(), self._stderr_width))
        self._write_stderr_lines("\n".join(lines))

    @property
    def _stderr_width(self) -> int | None:
        return self._width if self._stderr.isatty() else None

    def _write_stderr_lines(self, text: str) -> None:
        self._erase_drawn_text()
        self._write_to_stderr(text + "\n")

    def _erase_drawn_text(self) -> None:
        if self._has_drawn_text:
            self._has_drawn_text = False
            self._write_to_stderr("\r\x1b[K")

    def _write_to_stderr(self, text: str) -> None:
        # If stderr is closed, the failure cannot be reported anywhere.
        with contextlib.suppress(OSError, ValueError):
            self._stderr.write(text)
            self._stderr.flush()

    @property
    def _width(self) -> int:
        return max(shutil.get_terminal_size().columns, _MIN_WIDTH)

    def _is_colored(self, stream: TextIO) -> bool:
        """Whether a stream gets colors: --color decides, else NO_COLOR, else FORCE_COLOR, else the terminal."""
        environ = self._environ
        if self._options.color != "auto":
            return self._options.color == "always"
        if environ.get("NO_COLOR"):
            return False
        if environ.get("FORCE_COLOR", "0") != "0":
            return True
        return stream.isatty() and environ.get("TERM") != "dumb"

    def _redirect_to_devnull(self, stream: TextIO) -> None:
        """Redirect a broken stream to os.devnull, so that the interpreter's last flush does not fail."""
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _encode_json(document: "JsonValue", *, indent: int | None = None) -> str:
    from escrowctl.contract.json import encode

    return encode(document, spaced=True, indent=indent)
