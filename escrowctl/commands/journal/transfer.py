"""`escrowctl journal init|verify|export|import`: create, check, print and import a complete journal."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, TextIO

import typer

from escrowctl.commands.advice import INIT_FROM_EXPORT
from escrowctl.commands.journal.duplicates import make_duplicates_error, view_duplicates
from escrowctl.commands.rows import CSV_COLUMNS, view_entry
from escrowctl.contract.json import JsonValue, Number, as_json
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.chain import Head
from escrowctl.journal.model import Selection
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.sqlite.succession import replace_from_export
from escrowctl.journal.storage import JournalPlace, head_of
from escrowctl.journal.transfer import Archive, import_archive, read_archive, write_archive
from escrowctl.journal.verification import verify
from escrowctl.options import YesOption
from escrowctl.output.plain import render_csv
from escrowctl.output.view import View
from escrowctl.session import Session, session_of

_PAGE = 500
_MAX_HEAD_CHARS = 4096
_MAX_LINE_CHARS = 128 * 1024 * 1024


def init(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option("--from", metavar="EXPORT", help="Make a new journal from this export; - for stdin.")
    ] = None,
    admin: Annotated[
        str | None,
        typer.Option(
            "--admin", metavar="SERVICE", help="Set a shared journal up with this service of pg_service.conf."
        ),
    ] = None,
    single_role: Annotated[
        bool, typer.Option("--single-role", help="Set a shared journal up with the user that also writes.")
    ] = False,
    print_sql: Annotated[
        bool, typer.Option("--print", help="Only print the SQL that sets a shared journal up.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Create the journal if there is none, and print its id.

    For a CI job, run this once, and set ESCROWCTL_JOURNAL_ID in the job to the id. The job's live writes then need the
    journal with this id. --from closes the current journal and replaces it.

    \b
    Examples:
      escrowctl journal init
      escrowctl journal init --from journal.jsonl --yes
      escrowctl journal init --admin payments-admin
    """
    session = session_of(context)
    place = session.journals.place
    if place.is_shared and source is not None:
        raise bad_value(
            "--from makes a journal on this machine: to add an export to a shared journal, use journal import."
        )
    if not place.is_shared and (admin is not None or single_role or print_sql):
        raise bad_value(
            "--admin, --single-role and --print are for a shared journal: set ESCROWCTL_JOURNAL to its URL."
        )
    if source is not None:
        _init_from(session, source, yes=yes)
        return
    if place.is_shared and (print_sql or not place.exists):
        _init_shared(session, place, admin=admin, single_role=single_role, print_sql=print_sql)
        return
    with closing(session.journals.open(reading=True, check_required_ids=False)) as journal:
        journal.require_complete()
        exists = journal.place.exists
    with closing(session.journals.open(reading=False, check_required_ids=not exists)) as journal:
        journal_id, where = journal.storage.journal_id, journal.place.location
    document = as_json({"journal_id": journal_id, "path": where, "created": not exists})
    if exists:
        session.console.note("exists", "this journal exists already; it was not changed")
    done = None if exists else f"the journal {where} was created"
    session.show(View(document, journal_id, document), done=done)


def _init_shared(
    session: Session, place: JournalPlace, *, admin: str | None, single_role: bool, print_sql: bool
) -> None:
    """Create the tables of a shared journal, or print the SQL for that."""
    from escrowctl.journal.postgres.place import PostgresPlace  # noqa: PLC0415 - its driver is optional

    assert isinstance(place, PostgresPlace), "it is shared"
    if print_sql:
        session.console.write_data(place.make_script(with_roles=not single_role).rstrip("\n"))
        return
    if (admin is None) != single_role:
        raise bad_value(
            f"there is no journal {place.location}: repeat the command with --admin SERVICE, an administrator's "
            "connection, or with --single-role."
        )
    place.create(admin)
    journal_id = place.find_id() or ""
    if single_role:
        message = "the user that writes owns the tables: it could remove the triggers that protect the records"
        session.console.note("single_role", message, important=True)
    document = as_json({"journal_id": journal_id, "path": place.location, "created": True})
    session.show(View(document, journal_id, document), done=f"the journal {place.location} was created")


def _init_from(session: Session, file: str, *, yes: bool) -> None:
    """Replace the current journal with a new journal, which is made from an export."""
    archive = _read_export(session, file)

    def confirm(missing: int | None) -> None:
        if not yes:
            session.prompt.confirm(
                [f"  {_describe_missing(missing)}", "To close the current journal and make a new one, type yes:"],
                "yes",
                why="making a new journal needs confirmation",
                declined="no journal was made",
            )

    place = SqlitePlace(session.journals.folder)
    with session.signals.held():
        new, missing = replace_from_export(place, archive, now=session.runtime.now, confirm=confirm)
        document = as_json(
            {
                "journal_id": new.journal_id,
                "path": place.location,
                "created": True,
                "from": archive.journal_id,
                "entries": len(archive.by_entry),
                "missing_records": missing,
                "closed": new.was_closed,
                "old_path": str(new.old_file) if new.old_file is not None else None,
            }
        )
        session.console.note(
            "from_export",
            f"{_describe_missing(missing)}. Ask the service about writes after the export. The first live create needs "
            "--reason. The new journal lacks unsent rows of batches: to send them, repeat the file with --skip-done. "
            "Set ESCROWCTL_JOURNAL_ID and journal_id to the new id",
            important=True,
        )
        view = View(document, new.journal_id, document)
        session.show(view, done=f"journal {new.journal_id} was made from the export")


def _describe_missing(missing: int | None) -> str:
    if missing is None:
        return "it is not known how many records are missing in the export"
    return f"records missing in the export: {missing}"


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
    counts = {"records": found.records, "entries": found.entries}
    if found.problem is not None:
        message = f"the journal failed its check: {found.problem}."
        hints = (command("journal export > EXPORT", "to save the readable records"), INIT_FROM_EXPORT)
        raise EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hints, facts=counts)
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
        rows = (view_entry(entry).row(CSV_COLUMNS) for entry in session.journal_to_read.select_all(Selection(_PAGE)))
        for line in render_csv(CSV_COLUMNS, rows) if session.options.csv else write_archive(storage, problems.append):
            session.console.write_data(line)
    if problems:
        # It is printed because no better export may be possible. The error tells a script to keep an older export.
        raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, f"this export is incomplete: {problems[-1]}.")


def import_file(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="An export in JSON lines; - for stdin.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Import this machine's own journal into a shared one.")] = False,
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
    archive = _read_export(session, file) if file is not None else _read_own(session)
    opened = closing(session.journals.open(reading=False, check_required_ids=False))
    with opened as journal, journal.checked_commit() as commit:
        imported = import_archive(commit.transaction, journal.storage, archive)
    counts = f"{imported.added} added, {imported.updated} updated, {imported.known} already known"
    shown: dict[str, JsonValue] = {
        "journal_id": archive.journal_id,
        "added": Number(str(imported.added)),
        "updated": Number(str(imported.updated)),
        "known": Number(str(imported.known)),
    }
    document = shown | view_duplicates(imported.duplicates)
    view = View(document, archive.journal_id, shown, line=f"{archive.journal_id}   {counts}")
    session.show(view, done=f"{archive.journal_id} was imported ({counts})")
    if imported.duplicates:
        raise make_duplicates_error(session, imported.duplicates, "the import", "The journal was imported.")


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


def _read_export(session: Session, file: str) -> Archive:
    with _open_text(session, file) as stream:
        # The first line of an export is short. A longer first line is cut, and refused as no export.
        first_line = stream.readline(_MAX_HEAD_CHARS)
        other_lines = iter(partial(stream.readline, _MAX_LINE_CHARS), "")
        return read_archive(chain([first_line], other_lines), source=_describe_source(file))


def _read_own(session: Session) -> Archive:
    if not session.journals.place.is_shared:
        raise bad_value("--own imports into a shared journal: set ESCROWCTL_JOURNAL to its URL.")
    problems: list[str] = []
    with closing(session.journals.open_own()) as own:
        own.require_exists()
        archive = read_archive(write_archive(own.storage, problems.append), source=own.place.location)
    if problems:
        raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, f"{own.place.location} is incomplete: {problems[-1]}.")
    return archive


def _describe_source(file: str) -> str:
    return "standard input" if file == "-" else file
