"""`escrowctl user`: look users up."""

from typing import Annotated

import typer

from escrowctl.commands.read import show_by_id
from escrowctl.contract.operations import GET_USER
from escrowctl.session import session_of


def get(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="User ids, or - for stdin.")] = None,
) -> None:
    """Show users as the service describes them.

    \b
    Example:
      escrowctl user get usr_PAYER001 --json
    """
    show_by_id(session_of(context), GET_USER, ids)
