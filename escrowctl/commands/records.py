"""Records of the service, shown: one, several by id, or a whole list."""

from collections.abc import Callable

from escrowctl.client.orders import Record
from escrowctl.commands.arguments import read_ids
from escrowctl.commands.several import run_several
from escrowctl.contract.number import JsonValue
from escrowctl.output.view import Listing, View, flatten, text_of
from escrowctl.session import Session

COLUMNS = ("id", "status", "amount", "currency")


def view_record(record: Record, resource_id: str | None = None) -> View:
    """Return the view of a record: the service's own document, and the located fields as its row."""
    located = record.located
    named = located.id or resource_id
    return View(
        document=record.value,
        id=named,
        fields=flatten(record.value),
        row=(named or "", located.status or "", text_of(located.amount), located.currency or ""),
    )


def show_by_id(session: Session, ids: list[str] | None, read: Callable[[str], Record], *, noun: str) -> None:
    """Read and show one record, or several (`-`: ids from stdin) as a line each."""
    wanted, several = read_ids(ids, session.surroundings.stdin, noun=noun)
    session.service.refuse_key(*wanted)
    if several:
        run_several(session, wanted, lambda one: _line(read(one), one), failed="failed")
    else:
        session.show(view_record(read(wanted[0]), wanted[0]))


def show_list(session: Session, records: list[Record]) -> None:
    """Show a list: an array of the items as they stood, or the located fields in fixed columns."""
    views = tuple(view_record(record) for record in records)
    session.console.show_listing(Listing(COLUMNS, views, right=frozenset({"amount"})))


def _line(record: Record, resource_id: str) -> View:
    view = view_record(record, resource_id)
    line: JsonValue = {"id": resource_id, "outcome": "read", "record": record.value}
    return View(line, view.id, view.fields, row=view.row)
