"""`escrowctl tx list` (undocumented): the service's list of escrows, with more pages if replies lead to them."""

from collections.abc import Callable
from typing import Annotated

import typer

from escrowctl.commands.filters import PAGE, Filters, ReferenceOption, SinceOption, StatusOption, check_filters
from escrowctl.commands.tx.register import entries_here, show_register
from escrowctl.contract.operations import CREATE_TRANSACTION, LIST_TRANSACTIONS
from escrowctl.contract.pages import find_next
from escrowctl.contract.record import LOCATED, Record, Records
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.model import Selection
from escrowctl.output.view import Listing, view_record
from escrowctl.session import Session, session_of


def list_transactions(
    context: typer.Context,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Show up to N, from several pages.", min=1, max=100_000)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Read every page.")] = False,
    status: StatusOption = None,
    since: SinceOption = None,
    reference: ReferenceOption = None,
    local: Annotated[
        bool, typer.Option("--local", help="Those created or released from here, by the journal.")
    ] = False,
    refreshed: Annotated[bool, typer.Option("--refresh", help="With --local: read each at the service.")] = False,
    over: Annotated[
        str | None, typer.Option("--over", metavar="TIME", help="With --local: held for longer, such as 7d (16).")
    ] = None,
) -> None:
    """List escrows (the service does not document this call).

    Without --limit and --all, one page is read. escrowctl filters what it has read; the service does
    not. --local asks the journal instead: with --over, it ends with 16 where money is held too long.

    \b
    Examples:
      escrowctl tx list --all --status held --csv
      escrowctl tx list --local --refresh --over 7d
    """
    session = session_of(context)
    if not local and (refreshed or over is not None):
        raise bad_value("--refresh and --over need --local.")
    if everything and limit is not None:
        raise bad_value("use --limit or --all, not both.")
    filters = check_filters(session, status, since, reference)
    if local:
        show_register(session, filters, limit=limit, is_read=refreshed, over=over)
        return
    if session.options.raw:
        if limit is not None or everything or filters:
            raise bad_value("--raw shows one page unchanged: leave out --limit, --all and the filters.")
        found = session.reader.read_list(LIST_TRANSACTIONS)
        _note_undocumented(session, is_cut=find_next(found.document, None).has_more)
    else:
        found = Records(None, _read(session, filters, limit, everything=everything))
    views = tuple(view_record(one, raw=session.options.raw) for one in found.items)
    session.remember("transaction", {view.id: view.named["status"] for view in views})
    session.console.show_listing(Listing(LOCATED, views, found.document))


def _read(session: Session, filters: Filters, limit: int | None, *, everything: bool) -> list[Record]:
    """Return the records that pass the filters, and note possibly missing ones.

    Raises `ErrorCode.UNREADABLE_REPLY` if `everything` is requested and a page does not lead to the next one, or if
    --status is given and no record has a status.
    """
    from escrowctl.client.pages import read_pages  # noqa: PLC0415 - help does not pay for HTTP

    passes = _make_filter(session, filters)
    listed: list[Record] = []
    items: list[Record] = []
    has_more = False
    for page in read_pages(session.reader, LIST_TRANSACTIONS):
        listed += page.items
        items += filter(passes, page.items)
        has_more = page.has_more
        if everything and has_more and not page.leads_on:
            raise EscrowctlError(
                ErrorCode.UNREADABLE_REPLY,
                f"the service has more than the {len(items)} listed, but its reply does not lead to the next page.",
                effect=Effect.ONLY_READ,
                hint=command("tx list", "to list the first page"),
            )
        if not everything and len(items) >= (limit or 0):
            break
    is_cut = has_more or (limit is not None and len(items) > limit)
    _note_undocumented(session, is_cut=is_cut, searched=bool(filters))
    filters.note_left_out(session, [one.located.status for one in listed])
    if unnamed := sum(one.located.id is None for one in listed):
        find = command("doctor --tx ID", "to find the fields of an escrow")
        why = f"escrowctl finds no id in {unnamed} of the {len(listed)} escrows listed"
        session.console.note("unnamed", why, important=True, hints=(find,), invocation=session.invocation)
    return items[:limit]


def _note_undocumented(session: Session, *, is_cut: bool, searched: bool = False) -> None:
    lacks = (
        "the list may be incomplete"
        if not is_cut
        else "escrowctl searched only the newest; --all searches them all, --local what was created from here"
        if searched
        else "the service has more escrows than these; --all lists them all"
    )
    # Important: a script must not take a cut list of ids, or its sum, for complete.
    session.console.note("observed", f"GET /transactions is an undocumented call: {lacks}", important=is_cut)


def _make_filter(session: Session, filters: Filters) -> Callable[[Record], bool]:
    """Return the predicate of the filters. References are in the profile's reference field or in the journal."""
    field = session.service.reference_field
    named = frozenset[str]()
    if filters.reference is not None:
        selection = Selection(PAGE, operations=(CREATE_TRANSACTION.name,), reference=filters.reference)
        named = frozenset(one.settlement.result_id or "" for one in entries_here(session, selection))

    def passes(record: Record) -> bool:
        located, value = record.located, record.value
        sent = value.get(field) if field is not None and isinstance(value, dict) else None
        has_reference = filters.reference is None or sent == filters.reference or located.id in named
        return has_reference and filters.has_status(located.status) and filters.is_recent(located.created)

    return passes
