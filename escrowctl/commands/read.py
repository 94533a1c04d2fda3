"""`escrowctl tx get`, `tx list` and `user get`: records of the service, one, several by id, or a list."""

from typing import Annotated

import typer

from escrowctl.commands.arguments import read_ids
from escrowctl.contract.operations import GET_TRANSACTION, GET_USER, LIST_TRANSACTIONS, Operation
from escrowctl.contract.record import Record, Records
from escrowctl.output.view import Listing, View, flatten
from escrowctl.session import Session, session_of

COLUMNS = ("id", "status", "amount", "currency", "created")


def get_transactions(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Transaction ids, or - for stdin.")] = None,
) -> None:
    """Show escrows as the service describes them.

    \b
    Example:
      escrowctl tx get tx_7K2M9QHD --json
    """
    show_by_id(session_of(context), GET_TRANSACTION, ids)


def list_transactions(context: typer.Context) -> None:
    """List escrows, as the service lists them (observed, not published).

    The call was seen in activity listings; its contract is not shown, so nothing is asked of it: no
    filter, no paging. What comes may be one page of several.

    \b
    Example:
      escrowctl tx list --json
    """
    session = session_of(context)
    found = session.reader.read_list(LIST_TRANSACTIONS)
    session.console.note("observed", "GET /transactions was observed, not published: this may be one page of several")
    show_list(session, found)


def get_users(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="User ids, or - for stdin.")] = None,
) -> None:
    """Show users as the service describes them.

    \b
    Example:
      escrowctl user get usr_PAYER001 --json
    """
    show_by_id(session_of(context), GET_USER, ids)


def view_record(session: Session, record: Record, resource_id: str | None = None) -> View:
    """Return the view of a record: the service's own document (`--raw`: in its envelope), and the located fields."""
    located = record.located
    document = record.document if session.options.raw else record.value
    named = located.id or resource_id
    return View(
        document=document,
        id=named,
        fields=flatten(document),
        named={
            "id": named,
            "status": located.status,
            "amount": located.amount,
            "currency": located.currency,
            "created": located.created,
        },
        record=record.value,
    )


def show_by_id(session: Session, operation: Operation, ids: list[str] | None) -> None:
    """Read and show one record, or several (`-`: ids from stdin) as a line each."""
    wanted, several = read_ids(ids, session.surroundings.stdin, noun=operation.noun)
    session.service.refuse_key(*wanted)
    if several:
        from escrowctl.commands.several import run_several  # noqa: PLC0415 - one id does not pay for it

        run_several(session, wanted, lambda one: _line(session, session.reader.read(operation, one), one))
    else:
        session.show(view_record(session, session.reader.read(operation, wanted[0]), wanted[0]))
    session.remember(operation.noun, wanted)


def show_list(session: Session, found: Records) -> None:
    """Show a list: an array of the items as they came, or the located fields in fixed columns."""
    views = tuple(view_record(session, record) for record in found.items)
    session.console.show_listing(Listing(COLUMNS, views, found.document if session.options.raw else None))
    session.remember("transaction", (view.id for view in views))


def _line(session: Session, record: Record, resource_id: str) -> View:
    view = view_record(session, record, resource_id)
    return view._replace(document={"id": resource_id, "outcome": "read", "record": view.document}, outcome="read")
