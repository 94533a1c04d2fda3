"""`escrowctl journal verify|export|import`: check, print and import a complete journal."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, TextIO

import typer

from escrowctl.commands.advice import INIT_FROM_EXPORT
from escrowctl.commands.journal.duplicates import make_duplicates_error, view_duplicates
from escrowctl.commands.rows import CSV_COLUMNS, open_journal_to_read, view_entry
from escrowctl.contract.json import JsonValue, as_json
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.chain import Head
from escrowctl.journal.model import Selection
from escrowctl.journal.storage import Closing, head_of
from escrowctl.journal.succession import close_journal, refuse_second_successor, refuse_unfinished
from escrowctl.journal.transfer import Archive, import_in_commits, read_archive, write_archive
from escrowctl.journal.verification import verify
from escrowctl.output.plain import render_csv
from escrowctl.output.view import View
from escrowctl.session import Session, session_of

_MAX_HEAD_CHARS, _MAX_LINE_CHARS = 4096, 128 * 1024 * 1024


def verify_journal(
    context: typer.Context,
    head: Annotated[
        str | None, typer.Option("--head", metavar="FILE", help="A file from journal export --head; - for stdin.")
    ] = None,
) -> None:
    """Check the journal for damage and later changes.

    This finds accidents and careless edits. To detect a forgery by a user of this machine, compare the
    journal with a head that is stored elsewhere (journal export --head).

    \b
    Examples:
      escrowctl journal verify
      escrowctl journal verify --head last-week.json
    """
    session = session_of(context)
    session.journal_to_read.require_exists()
    storage, witness = session.journal_to_read.storage, session.journal_to_read.witness
    expected = None
    if head is not None:
        source = _describe_source(head)
        with _open_text(session, head) as stream:
            text = stream.read(_MAX_HEAD_CHARS)
        try:
            saved = json.loads(text)
            expected = Head(int(saved["sequence"]), str(saved["digest"]))
            saved_id = str(saved["journal_id"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise bad_value(f"{source} is not the output of journal export --head.") from None
        if saved_id != storage.journal_id:
            raise bad_value(f"{source} belongs to journal {saved_id}, but this journal is {storage.journal_id}.")
    found = verify(storage, witness, expected=expected)
    counts = {"records": found.head.sequence, "entries": found.entries}
    if found.problem is not None:
        closed = ""
        with suppress(EscrowctlError), storage.reading() as view:
            view.check()  # of a record that was changed, nothing is true
            closed = f" It is closed: {view.closing}." if view.closing is not None else ""
        message = f"the journal failed its check: {found.problem}.{closed}"
        hints = (command("journal export > EXPORT", "to save the readable records"), INIT_FROM_EXPORT)
        raise EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=() if closed else hints, facts=counts)
    open_journal_to_read(session)  # it says if the journal is closed
    document = as_json({"journal_id": storage.journal_id, "valid": True, **counts, "head": found.head.digest})
    if head is not None:
        session.console.note("head", f"the journal matches the head in {_describe_source(head)}")
    session.show(View(document, storage.journal_id, document))


def export(
    context: typer.Context,
    head: Annotated[bool, typer.Option("--head", help="Only the newest hash (the head), to store elsewhere.")] = False,
) -> None:
    """Print the journal as JSON lines to import, or as CSV.

    If the chain of records is broken, the command prints the records before the break, and fails.

    \b
    Examples:
      escrowctl journal export > journal.jsonl
      escrowctl journal export --csv > journal.csv
      escrowctl journal export --head > head.json
    """
    session = session_of(context)
    session.journal_to_read.require_exists()
    storage = session.journal_to_read.storage
    problems = list(filter(None, [session.journal_to_read.witness.find_problem(storage)]))
    if head:
        last = head_of(storage)
        document = {"journal_id": storage.journal_id, "sequence": last.sequence, "digest": last.digest}
        session.console.write_data(json.dumps(document))
    else:
        rows = (view_entry(entry).row(CSV_COLUMNS) for entry in session.journal_to_read.select_all(Selection()))
        for line in render_csv(CSV_COLUMNS, rows) if session.options.csv else write_archive(storage, problems.append):
            session.console.write_data(line)
    if problems:
        # It is printed because no better export may be possible. The error tells a script to keep an older export.
        raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, f"this export is incomplete: {problems[-1]}.")


def import_file(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="An export in JSON lines; - for stdin.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Import this machine's own journal, and close it.")] = False,
) -> None:
    """Import another journal, so that its writes are not repeated here.

    The complete file is checked first. Writes that are in flight in the file become unknown. Importing
    twice is safe: nothing is added twice. If both journals did the same write, the command fails (see
    escrowctl help journal).

    \b
    Examples:
      escrowctl journal import other-machine.jsonl
      ssh build1 escrowctl journal export | escrowctl journal import -
      escrowctl journal import --own
    """
    session = session_of(context)
    if (file is None) != own:
        raise bad_value("journal import needs one of FILE and --own.")
    archive = read_export(session, file) if file is not None else _read_own(session)
    with closing(session.journals.open(reading=False, check_required_ids=own)) as journal:
        added, updated, known, duplicates = import_in_commits(journal, archive)
        successor = Closing(journal.storage.journal_id, journal.place.location)
    counts = f"{added} added, {updated} updated, {known} already known"
    numbers = {"added": as_json(added), "updated": as_json(updated), "known": as_json(known)}
    shown: dict[str, JsonValue] = {"journal_id": successor.successor, "from": archive.journal_id, **numbers}
    document = shown | view_duplicates(duplicates)
    view = View(document, archive.journal_id, shown, line=f"{archive.journal_id}   {counts}")
    session.show(view, done=f"{archive.journal_id} was imported ({counts})")
    if own and archive.closing is None:
        # A command without the settings of the shared journal must not write to it.
        with session.journals.open_own(reading=False) as mine:
            close_journal(mine.place, mine.storage, successor, records=archive.record_count)
            where = mine.place.location
        message = f"{where} is closed for all services: set the URL in each profile and job of this machine"
        session.console.note("closed", f"{message}; the shared journal's id is {successor.successor}", important=True)
    if duplicates:
        raise make_duplicates_error(session, duplicates, "the import", "The journal was imported.")


@contextmanager
def _open_text(session: Session, file: str) -> Iterator[TextIO]:
    try:
        if file == "-":
            yield session.runtime.stdin
            return
        path = Path(file)
        # A named pipe is read like standard input. A device may have no end.
        if path.exists() and not (path.is_file() or path.is_fifo()):
            raise bad_value(f"{file} is neither a file nor a pipe.")
        with path.open(encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise bad_value(f"{file}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise bad_value(f"{_describe_source(file)} is not UTF-8 text.") from error


def read_export(session: Session, file: str) -> Archive:
    """Return the journal in a file, or from standard input if it is "-". Raises the errors of `read_archive`."""
    with _open_text(session, file) as stream:
        # The first line of an export is short. A longer first line is cut, and refused as no export.
        first_line = stream.readline(_MAX_HEAD_CHARS)
        other_lines = iter(partial(stream.readline, _MAX_LINE_CHARS), "")
        return read_archive(chain([first_line], other_lines), source=_describe_source(file))


def _read_own(session: Session) -> Archive:
    """Return this machine's own journal, which is created if there is none. Raises `BUSY` if a write is in progress."""
    if not session.journals.place.is_shared:
        raise bad_value("--own imports into a shared journal: set ESCROWCTL_JOURNAL to its URL.")
    problems: list[str] = []
    with session.journals.open_own(reading=False) as own:
        own.require_complete()
        archive = read_archive(write_archive(own.storage, problems.append), source=own.place.location)
        refuse_unfinished(own.storage, own.locks)  # a write that begins now is not in the archive: see `close_journal`
    refuse_second_successor(archive.closing, session.journals.place.find_id())
    if problems:
        raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, f"{own.place.location} is incomplete: {problems[-1]}.")
    return archive


def _describe_source(file: str) -> str:
    return "standard input" if file == "-" else file
