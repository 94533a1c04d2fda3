"""`escrowctl journal init`: create a journal, on this machine or in a database, also from an export."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from escrowctl.commands.journal.transfer import read_export
from escrowctl.commands.writing import check_text
from escrowctl.contract.json import JsonValue, as_json
from escrowctl.errors import ErrorCode, bad_value, not_sent
from escrowctl.journal.model import OperatorDecision, Selection, State
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.options import YesOption
from escrowctl.output.view import Listing, View
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from escrowctl.journal.postgres.place import PostgresPlace
    from escrowctl.journal.succession import Successor


def init(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option("--from", metavar="EXPORT", help="Make a new journal from this export; - for stdin.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name of a shared journal, in place of the URL's.")
    ] = None,
    admin: Annotated[
        str | None,
        typer.Option("--admin", metavar="SERVICE", help="Create a shared one with this service of pg_service.conf."),
    ] = None,
    single_role: Annotated[
        bool, typer.Option("--single-role", help="Create a shared one with the user that also writes.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only list the steps that create a shared journal.")] = False,
    print_sql: Annotated[
        bool, typer.Option("--print", help="Only print the SQL that creates a shared journal.")
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
    shared = session.journals.shared_place
    if shared is None:
        if name is not None or admin is not None or single_role or plan or print_sql:
            message = "--name, --admin, --single-role, --plan and --print are for a shared journal"
            raise bad_value(f"{message}: set ESCROWCTL_JOURNAL to its URL.")
        _init_own(session) if source is None else _replace_own(session, source, yes=yes)
        return
    new = _rename(shared, name)
    if plan or print_sql:
        _show_steps(session, new, with_roles=not single_role, as_sql=print_sql)
        return
    if source is None and (known := new.find_id()) is not None:
        _show_journal(session, known, new.location, created=False)
        return
    if source is not None and new.url == shared.url:
        raise bad_value(f"a journal made from an export needs a new name: add --name, such as {shared.url.name}_2.")
    if (admin is None) != single_role and not new.exists:
        raise bad_value(
            f"there is no journal {new.location}: repeat the command with --admin SERVICE, an administrator's "
            "connection, or with --single-role."
        )
    if source is not None:
        from escrowctl.journal.postgres.succession import replace_from_export  # noqa: PLC0415 - seldom needed

        _replace(session, partial(replace_from_export, shared, new, admin=admin), source, new.location, yes=yes)
    else:
        _show_journal(session, new.create(admin), new.location, created=True)
    for concern in new.examine(session.runtime.now).concerns:
        session.console.note("database", concern, important=True)
    if new is not shared:
        message = f"to use this journal, write journal={new.url.name} in the URL of each profile and job"
        session.console.note("name", message, important=True)


def open_for_creates(
    context: typer.Context,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="A reason to store in the journal.")],
    yes: YesOption = False,
) -> None:
    """Allow live creates in a journal that was made from an export.

    Until then it refuses them, because it may lack creates that were sent. Record these first: see
    escrowctl help journal.

    \b
    Examples:
      escrowctl journal open --reason "all orders of today were looked up"
      escrowctl journal open --reason "ticket 5512" --yes
    """
    session = session_of(context)
    session.service.refuse_key(check_text(reason, name="--reason"))
    journal = session.journal
    where = journal.place.location
    journal.require_complete()
    session.journals.require_shared(session.service)
    if not journal.is_unopened():
        raise not_sent(ErrorCode.ALREADY_DONE, f"the journal {where} is open already.")
    if not yes:
        unknown = sum(1 for _ in journal.select_all(Selection(states=(State.UNKNOWN,))))
        lines = [f"  {where}   unknown writes: {unknown}", "A create that it lacks can be sent a second time then."]
        session.prompt.confirm(
            [*lines, "To let everybody who uses this journal create escrows, type yes:"],
            "yes",
            why="opening a journal needs confirmation",
            declined="the journal was not opened",
        )
    journal.open_for_creates(OperatorDecision(session.runtime.operator, reason))
    document = as_json({"journal_id": journal.storage.journal_id, "path": where, "opened": True})
    session.show(View(document, journal.storage.journal_id, document), done=f"the journal {where} was opened")


def _init_own(session: Session) -> None:
    """Create the journal of this machine if there is none."""
    with closing(session.journals.open(reading=True, check_required_ids=False)) as journal:
        closed, exists = journal.require_complete(), journal.place.exists
    with closing(session.journals.open(reading=False, check_required_ids=not exists)) as journal:
        _show_journal(session, journal.storage.journal_id, journal.place.location, created=not exists)
        if closed is not None:
            session.console.note("closed", f"this journal is closed: {closed}", important=True)


def _rename(place: PostgresPlace, name: str | None) -> PostgresPlace:
    """Return the place of the journal with this name in the same database. Raises `BAD_VALUE`."""
    try:
        return place.with_name(name) if name is not None else place
    except ValueError as error:
        raise bad_value(f"--name {error}.") from error


def _replace_own(session: Session, source: str, *, yes: bool) -> None:
    from escrowctl.journal.sqlite.succession import replace_from_export  # noqa: PLC0415 - seldom needed

    place = SqlitePlace(session.journals.folder)
    _replace(session, partial(replace_from_export, place), source, place.location, yes=yes)


def _replace(
    session: Session, replace: Callable[..., tuple[Successor, int | None]], source: str, where: str, *, yes: bool
) -> None:
    """Make a new journal, at `where`, from an export, and show it."""
    archive, confirm = read_export(session, source), partial(_confirm, session, where, yes=yes)
    with session.signals.held():
        new, missing = replace(archive=archive, now=session.runtime.now, confirm=confirm)
        made = {"journal_id": new.journal_id, "path": where, "created": True}
        source_facts = {"from": archive.journal_id, "entries": len(archive.by_entry), "missing_records": missing}
        old = {"closed": new.was_closed, "old_path": str(new.old_file) if new.old_file is not None else None}
        document = as_json({**made, **source_facts, **old})
        session.console.note(
            "from_export",
            f"{_describe_missing(missing)}. "
            f"{'' if new.was_closed else 'No old journal was closed: if one can still be used, stop all who use it. '}"
            "Record what was sent after the export: repeat each line with --already-sent, and resolve it. Then open "
            "the journal for creates (journal open --reason TEXT). It lacks unsent rows of batches: to send them, take "
            "what the service may have out of the file, then repeat it with --skip-done. Set ESCROWCTL_JOURNAL_ID and "
            "journal_id to the new id",
            important=True,
        )
        done = f"journal {new.journal_id} was made from the export"
        session.show(View(document, new.journal_id, document), done=done)


def _show_steps(session: Session, place: PostgresPlace, *, with_roles: bool, as_sql: bool) -> None:
    """Show the steps that create a shared journal; as a list, only those that are not done."""
    steps = place.plan(with_roles=with_roles)
    if as_sql:
        session.console.write_data("".join(("BEGIN;\n", *(step.script for step in steps), "COMMIT;")))
        return
    if place.exists:
        session.console.note("exists", f"the journal {place.location} exists: nothing is left to do")
    views = []
    for step in steps if not place.exists else ():
        named: dict[str, JsonValue] = {"file": step.file, "purpose": step.purpose}
        views.append(View(named, step.file, named=named, record=named))
    session.console.show_listing(Listing(("file", "purpose"), tuple(views)))


def _confirm(session: Session, where: str, missing: int | None, *, yes: bool) -> None:
    """Ask before the current journal is closed, unless `yes`. Raises `CONFIRMATION_NEEDED` or `DECLINED`."""
    if not yes:
        session.prompt.confirm(
            [f"  {_describe_missing(missing)}", f"To close the current journal and make {where}, type yes:"],
            "yes",
            why="making a new journal needs confirmation",
            declined="no journal was made",
        )


def _show_journal(session: Session, journal_id: str, where: str, *, created: bool) -> None:
    document = as_json({"journal_id": journal_id, "path": where, "created": created})
    if not created:
        session.console.note("exists", "this journal exists already; it was not changed")
    session.show(View(document, journal_id, document), done=f"the journal {where} was created" if created else None)


def _describe_missing(missing: int | None) -> str:
    if missing is None:
        return "it is not known how many records are missing in the export"
    return f"records missing in the export, as far as this machine knows: {missing}"
