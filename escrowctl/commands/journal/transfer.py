"""`escrowctl journal init|verify|export|import`: the complete journal, also as text."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO

import typer

from escrowctl.commands.advice import FROM_EXPORT
from escrowctl.commands.journal.duplicates import done_twice, view_duplicates
from escrowctl.commands.rows import SHEET, view_entry
from escrowctl.contract.json import JsonValue, Number, as_json
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.chain import Head
from escrowctl.journal.model import Selection
from escrowctl.journal.opening import FILE_NAME
from escrowctl.journal.sqlite.succession import replace_from_export
from escrowctl.journal.storage import head_of
from escrowctl.journal.transfer import merge, read_archive, write_archive
from escrowctl.journal.verification import verify
from escrowctl.options import YesOption
from escrowctl.output.plain import render_csv
from escrowctl.output.view import View
from escrowctl.runtime import timestamp
from escrowctl.session import Session, session_of

_PAGE = 500
_MAX_HEAD = 4096
_MAX_LINE = 128 * 1024 * 1024


def init(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option("--from", metavar="EXPORT", help="Make a new journal of this export; - for stdin.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Create the journal if there is none, and print its id.

    Once for a CI job, on a disk that stays. The job sets ESCROWCTL_JOURNAL_ID to this id: with any other journal,
    and with none, its live writes fail (exit 17). --from closes a journal that is here.

    \b
    Examples:
      escrowctl journal init
      escrowctl journal init --from journal.jsonl --yes
    """
    session = session_of(context)
    if source is not None:
        _init_from(session, source, yes=yes)
        return
    with closing(session.journals.open(reading=True, required=False)) as journal:
        journal.require_complete()
        exists = journal.storage.is_there
    with closing(session.journals.open(reading=False, required=not exists)) as journal:
        journal_id, where = journal.storage.journal_id, journal.storage.where
    document = as_json({"journal_id": journal_id, "path": where, "created": not exists})
    if exists:
        session.console.note("exists", "this journal exists already; it was not changed")
    done = None if exists else f"the journal {where} was created"
    session.show(View(document, journal_id, document), done=done)


def _init_from(session: Session, file: str, *, yes: bool) -> None:
    """Make a new journal from an export. It replaces the journal that is here."""
    with _opened(session, file) as stream:
        archive = read_archive(_lines(stream), source=_name(file))

    def confirm(missing: int | None) -> None:
        if not yes:
            session.prompt.confirm(
                [f"  {_describe_missing(missing)}", "To close the journal that is here and make a new one, type yes:"],
                "yes",
                why="making a new journal needs confirmation",
                declined="no journal was made",
            )

    path, at = session.journals.folder / FILE_NAME, timestamp(session.runtime.now())
    with session.signals.held():
        new, missing = replace_from_export(path, archive, at=at, confirm=confirm)
        document = as_json(
            {
                "journal_id": new.journal_id,
                "path": str(path),
                "created": True,
                "from": archive.journal_id,
                "entries": len(archive.by_entry),
                "missing_records": missing,
                "closed": new.was_closed,
                "old_path": str(new.old) if new.old is not None else None,
            }
        )
        session.console.note(
            "from_export",
            f"{_describe_missing(missing)}. Ask the service about writes after the export. The first live create needs "
            "--reason. A batch's rows that were not sent are not in it: repeat its file with --skip-done. Set "
            "ESCROWCTL_JOURNAL_ID and journal_id to the new id",
            important=True,
        )
        view = View(document, new.journal_id, document)
        session.show(view, done=f"journal {new.journal_id} was made of the export")


def _describe_missing(missing: int | None) -> str:
    if missing is None:
        return "it is not known how many records the export misses"
    return f"records that the export misses: {missing}"


def verify_journal(
    context: typer.Context,
    head: Annotated[
        str | None, typer.Option("--head", metavar="FILE", help="What journal export --head printed once; - for stdin.")
    ] = None,
) -> None:
    """Check the journal for damage and later changes (exit 16).

    It finds accidents and careless edits. A user of this machine can forge the journal; a head that
    is stored elsewhere (journal export --head) shows that too.

    \b
    Examples:
      escrowctl journal verify
      escrowctl journal verify --head last-week.json
    """
    session = session_of(context)
    session.journal_to_read.require_written()
    storage = session.journal_to_read.storage
    found = verify(storage, expected=_read_head(session, head, journal_id=storage.journal_id))
    if found.problem is not None:
        raise EscrowctlError(
            ErrorCode.CHECK_FAILED,
            f"the journal failed its check: {found.problem}.",
            hint=(command("journal export > EXPORT", "to save what can be read"), FROM_EXPORT),
            facts={"records": found.records, "entries": found.entries},
        )
    counts = {"records": found.records, "entries": found.entries}
    document = as_json({"journal_id": storage.journal_id, "valid": True, **counts, "head": found.head.digest})
    if head is not None:
        session.console.note("head", f"the journal matches the head in {_name(head)}")
    session.show(View(document, storage.journal_id, document))


def export(
    context: typer.Context,
    head: Annotated[bool, typer.Option("--head", help="Only the chain's head, to store elsewhere.")] = False,
) -> None:
    """Print the journal as JSON lines to import, or as CSV.

    Ends with 17 if records are missing from it: of a broken chain it has those up to the break.

    \b
    Examples:
      escrowctl journal export > journal.jsonl
      escrowctl journal export --csv > journal.csv
      escrowctl journal export --head > head.json
    """
    session = session_of(context)
    session.journal_to_read.require_written()
    storage = session.journal_to_read.storage
    problems = list(filter(None, [storage.find_lost()]))
    if head:
        last = head_of(storage)
        document = {"journal_id": storage.journal_id, "sequence": last.sequence, "digest": last.digest}
        session.console.data(json.dumps(document))
    else:
        rows = (view_entry(entry).row(SHEET) for entry in session.journal_to_read.all(Selection(_PAGE)))
        for line in render_csv(SHEET, rows) if session.options.csv else write_archive(storage, problems.append):
            session.console.data(line)
    if problems:
        # It is printed because it may be all that is left. The error keeps a script from replacing an older export.
        raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, f"this export is incomplete: {problems[-1]}.")


def import_file(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export in JSON lines; - for stdin.")],
) -> None:
    """Import another journal, so that its writes are not repeated here.

    The complete file is checked first. What was in flight there is unknown here. What is already
    known here does not change, so importing twice is safe. Ends with 16 if both journals did one
    write (see escrowctl help journal).

    \b
    Examples:
      escrowctl journal import other-machine.jsonl
      ssh build1 escrowctl journal export | escrowctl journal import -
    """
    session = session_of(context)
    with _opened(session, file) as stream:
        archive = read_archive(_lines(stream), source=_name(file))
    at = timestamp(session.runtime.now())
    with closing(session.journals.open(reading=False, required=False)) as journal:
        taken = merge(journal.storage, archive, at=at)
    counts = f"{taken.added} added, {taken.updated} updated, {taken.known} already known"
    shown: dict[str, JsonValue] = {
        "journal_id": archive.journal_id,
        "added": Number(str(taken.added)),
        "updated": Number(str(taken.updated)),
        "known": Number(str(taken.known)),
    }
    document = shown | view_duplicates(taken.duplicates)
    view = View(document, archive.journal_id, shown, line=f"{archive.journal_id}   {counts}")
    session.show(view, done=f"{archive.journal_id} was imported ({counts})")
    if taken.duplicates:
        raise done_twice(session, taken.duplicates, "the import", "The journal was imported.")


def _read_head(session: Session, file: str | None, *, journal_id: str) -> Head | None:
    """Return the head in a file from `journal export --head`. Raises `ErrorCode.BAD_VALUE` for any other file."""
    if file is None:
        return None
    with _opened(session, file) as stream:
        text = stream.read(_MAX_HEAD)
    try:
        document = json.loads(text)
        head = Head(int(document["sequence"]), str(document["digest"]))
        of = str(document["journal_id"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise bad_value(f"{_name(file)} is not the output of journal export --head.") from None
    if of != journal_id:
        raise bad_value(f"{_name(file)} belongs to journal {of}, but this journal is {journal_id}.")
    return head


@contextmanager
def _opened(session: Session, file: str) -> Iterator[TextIO]:
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
        raise bad_value(f"{_name(file)} is not UTF-8 text.") from error


def _lines(stream: TextIO) -> Iterator[str]:
    # A file that is not an export can be recognised by its first line.
    yield stream.readline(_MAX_HEAD)
    yield from iter(partial(stream.readline, _MAX_LINE), "")


def _name(file: str) -> str:
    return "standard input" if file == "-" else file
