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

    Without --save, nothing is changed. If a check fails, the exit code is 16.
    -q prints only the names of the checks that failed, are unclear, or give a warning.

    \b
    Examples:
      escrowctl -p acme-test doctor
      escrowctl -p acme-test doctor --tx tx_7K2M9QHD --save
    """
    from escrowctl.commands.checkup import run_checks  # noqa: PLC0415 - help does not need it

    run_checks(session_of(context), resource_id, save=save)
