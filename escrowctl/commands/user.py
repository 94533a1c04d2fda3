"""`escrowctl user`: look users up."""

from typing import Annotated

import typer

from escrowctl.commands.records import show_by_id
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
    session = session_of(context)
    show_by_id(session, ids, lambda one: session.client.get_user(one), noun="user")
