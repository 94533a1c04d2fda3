"""`escrowctl tx list`: the escrows of the service (an undocumented call), or with --local those in the journal."""

from typing import Annotated

import typer

from escrowctl.commands.filters import Filters, ReferenceOption, SinceOption, StatusOption
from escrowctl.commands.tx.register import list_own_entries, show_register
from escrowctl.contract.operations import CREATE_TRANSACTION, LIST_TRANSACTIONS
from escrowctl.contract.pages import find_next_page
from escrowctl.contract.record import KNOWN_FIELD_NAMES, Record, Records
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.model import Selection
from escrowctl.output.view import Listing, view_record
from escrowctl.session import Session, session_of


def list_transactions(
    context: typer.Context,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="List up to N escrows.", min=1, max=100_000)
    ] = None,
    all_pages: Annotated[bool, typer.Option("--all", help="Read every page.")] = False,
    status: StatusOption = None,
    since: SinceOption = None,
    reference: ReferenceOption = None,
    local: Annotated[
        bool, typer.Option("--local", help="List the escrows that writes in the journal created or released.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="With --local: read each escrow at the service.")] = False,
    over: Annotated[
        str | None, typer.Option("--over", metavar="TIME", help="With --local: escrows held over TIME, such as 7d.")
    ] = None,
) -> None:
    """List escrows (the service does not document this call).

    Without --limit and --all, one page is read. The filters are applied to the pages that were read.
    --local lists escrows from the journal instead; with --over, the command fails if it lists any.

    \b
    Examples:
      escrowctl tx list --all --status held --csv
      escrowctl tx list --local --refresh --over 7d
    """
    session = session_of(context)
    if not local and (refresh or over is not None):
        raise bad_value("--refresh and --over need --local.")
    if all_pages and limit is not None:
        raise bad_value("use --limit or --all, not both.")
    filters = Filters(session, status, since, reference)
    if local:
        show_register(session, filters, limit=limit, refresh=refresh, over=over)
        return
    if session.options.raw:
        if limit is not None or all_pages or filters:
            raise bad_value("--raw shows one page unchanged: leave out --limit, --all and the filters.")
        found = session.reader.read_list(LIST_TRANSACTIONS)
        has_more, _ = find_next_page(found.document, None)
        _note_undocumented(session, is_partial=has_more)
    else:
        found = Records(None, _read_filtered(session, filters, limit, all_pages=all_pages))
    views = tuple(view_record(one, raw=session.options.raw) for one in found.items)
    session.remember_ids("transaction", {view.id: view.named["status"] for view in views})
    session.console.show_listing(Listing(KNOWN_FIELD_NAMES, views, found.document))


def _read_filtered(session: Session, filters: Filters, limit: int | None, *, all_pages: bool) -> list[Record]:
    """Return at most `limit` escrows that pass the filters. Write a note that the list is, or may be, incomplete.

    Raises `ErrorCode.UNREADABLE_REPLY` if `all_pages` is set and a reply does not say where the next page is, or
    if --status is given and no escrow has a status.
    """
    from escrowctl.client.pages import read_pages  # noqa: PLC0415 - help does not pay for HTTP

    field = session.service.reference_field
    created_ids = frozenset[str]()
    if filters.reference is not None:
        selection = Selection(operations=(CREATE_TRANSACTION.name,), reference=filters.reference)
        created_ids = frozenset(one.settlement.result_id or "" for one in list_own_entries(session, selection))

    def passes(record: Record) -> bool:
        # The reference may be in the record or in the journal.
        located, value = record.known, record.value
        reference = value.get(field) if field is not None and isinstance(value, dict) else None
        has_reference = filters.reference is None or reference == filters.reference or located.id in created_ids
        return has_reference and filters.has_status(located.status) and filters.is_recent(located.created)

    listed: list[Record] = []
    items: list[Record] = []
    has_more = False
    for page in read_pages(session.reader, LIST_TRANSACTIONS):
        listed += page.items
        items += filter(passes, page.items)
        has_more = page.has_more
        if all_pages and has_more and not page.has_readable_next:
            message = (
                f"the service has more than these {len(items)} escrows, but its reply does not name the next page."
            )
            hint = command("tx list", "to list the first page")
            raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, message, effect=Effect.ONLY_READ, hint=hint)
        if not all_pages and len(items) >= (limit or 0):
            break
    _note_undocumented(session, is_partial=has_more or (limit is not None and len(items) > limit))
    filters.note_left_out(session, [one.known.status for one in listed])
    if (with_id := sum(one.known.id is not None for one in listed)) < len(listed):
        find = command("doctor --tx ID", "to find the fields of an escrow")
        message = f"escrowctl finds an id in only {with_id} of the {len(listed)} escrows listed"
        session.console.note("unnamed", message, important=True, hints=(find,))
    return items[:limit]


def _note_undocumented(session: Session, *, is_partial: bool) -> None:
    more = "the service has more escrows than were read; --all reads them all"
    completeness = more if is_partial else "the list may be incomplete"
    # Important: a script must not take an incomplete list of ids, or its sum, for complete.
    session.console.note("observed", f"GET /transactions is an undocumented call: {completeness}", important=is_partial)
