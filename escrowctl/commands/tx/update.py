"""`escrowctl tx update` (undocumented)."""

from functools import partial
from typing import Annotated

import typer

from escrowctl.commands.writing import check_options, make_confirm, note_replayed, read_data, show_dry_run
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.json import encode
from escrowctl.contract.operations import RELEASE_TRANSACTION, UPDATE_TRANSACTION
from escrowctl.errors import adding_id
from escrowctl.options import AllowDuplicateOption, DryRunOption, KeyOption, ReasonOption, YesOption
from escrowctl.output.view import View, view_record
from escrowctl.session import session_of
from escrowctl.writes.inspection import RecordOptions
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import make_update_request


def update(
    context: typer.Context,
    transaction_id: Annotated[str, typer.Argument(metavar="ID", help="A transaction id.")],
    data: Annotated[str, typer.Option(metavar="JSON", help="The JSON object to send; @FILE or @- reads one.")],
    yes: YesOption = False,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Update even if the escrow cannot be read.")
    ] = False,
    reason: ReasonOption = None,
    idempotency_key: KeyOption = None,
    allow_duplicate: AllowDuplicateOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Update an escrow (the service does not document this call).

    The only known replies to this call have the status 400. What it accepts is not known.
    escrowctl shows the escrow, and you confirm by typing the escrow's id.

    \b
    Examples:
      escrowctl tx update tx_7K2M9QHD --data '{"note": "checked"}'
      escrowctl tx update tx_7K2M9QHD --data @note.json --dry-run
    """
    session = session_of(context)
    resource_id = parse_id(transaction_id)
    body = read_data(data, session.runtime.stdin)
    options = check_options(idempotency_key, reason, allow_duplicate)
    make_request = partial(make_update_request, resource_id, body, options)
    if dry_run:
        with adding_id(resource_id):
            show_dry_run(session, make_request(None))
        return
    session.service.refuse_key(*make_request(None).typed_texts)
    session.console.note("observed", "PUT /transactions/:id is an undocumented call: its effect is not known")
    with session.signals.held():
        confirm = make_confirm(session, UPDATE_TRANSACTION, encode(body), yes=yes)
        reading = RecordOptions(allow_unreadable=allow_unreadable)
        with adding_id(resource_id):
            result = session.pipeline.run_on_record(make_request, confirm, reading)
        note_replayed(session, result)
        if result.why_unread is not None:
            message = f"escrowctl could not read {resource_id} after the update: {result.why_unread}"
            session.console.note("not_read_back", message)
        record, kind = result.after or result.record, kind_of(RELEASE_TRANSACTION.name)
        status_now = record.known.status if record else None
        was_released, is_released = (
            kind.is_proven_by(status, session.service) for status in (result.status_before, status_now)
        )
        if is_released and not (was_released or result.replayed):
            session.console.warn(
                "now_released",
                f"after this update, {resource_id} has the status {status_now}. "
                f"To check it: {session.invocation} tx get {resource_id}",
            )
        view = View({"id": resource_id}, resource_id, {"id": resource_id})
        if (shown := result.record or result.after) is not None:
            view = view_record(shown, resource_id, raw=session.options.raw)
        session.show(view, done=f"the service accepted the update of {resource_id}")
