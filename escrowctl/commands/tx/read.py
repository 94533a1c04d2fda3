"""`escrowctl tx get` and `escrowctl tx list`."""

from typing import Annotated

import typer

from escrowctl.commands.read import show_by_id, show_list
from escrowctl.contract.operations import GET_TRANSACTION, LIST_TRANSACTIONS
from escrowctl.session import session_of


def get(
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

    The call was seen in activity listings; its contract is not shown, so it is called without
    filter or paging. What comes may be one page of several.

    \b
    Example:
      escrowctl tx list --json
    """
    session = session_of(context)
    found = session.reader.read_list(LIST_TRANSACTIONS)
    session.console.note("observed", "GET /transactions is an undocumented call: there may be more items")
    show_list(session, found)
