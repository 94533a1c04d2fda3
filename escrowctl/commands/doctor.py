"""`escrowctl doctor`: check the set-up and the connection to the service, and report corrections."""

from typing import Annotated

import typer

from escrowctl.session import session_of


def examine(
    context: typer.Context,
    resource_id: Annotated[
        str | None, typer.Option("--tx", metavar="ID", help="Find id, status and money in the record of this escrow.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Store the proved settings in the profile.")] = False,
) -> None:
    """Check config, key, connection, clock and journal.

    It changes nothing, except the profile with --save. If a check fails, the exit code is 16.
    -q prints only the names of the checks that are failed, unclear or a warning.

    \b
    Examples:
      escrowctl -p acme-test doctor
      escrowctl -p acme-test doctor --tx tx_7K2M9QHD --save
    """
    from escrowctl.commands.checkup import check_up  # noqa: PLC0415 - help does not need it

    check_up(session_of(context), resource_id, save=save)
