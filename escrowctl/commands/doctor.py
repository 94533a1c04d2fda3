"""`escrowctl doctor`: check the set-up and the connection to the service, and report corrections."""

from typing import Annotated

import typer

from escrowctl.session import session_of


def examine(
    context: typer.Context,
    tx: Annotated[
        str | None, typer.Option("--tx", metavar="ID", help="Find the fields of this escrow's record.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Store what is certain in the profile.")] = False,
) -> None:
    """Check config, key, connection, clock and journal.

    It only reads; --save changes the profile. If a check fails, the exit code is 16.
    -q prints the names of the checks that are not in order.

    \b
    Examples:
      escrowctl -p acme-test doctor
      escrowctl -p acme-test doctor --tx tx_7K2M9QHD --save
    """
    from escrowctl.commands.checkup import check_up  # noqa: PLC0415 - the help of all commands does not pay for it

    check_up(session_of(context), tx, save=save)
