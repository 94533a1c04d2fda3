"""The command tree: which command stands where. No logic."""

from collections.abc import Sequence
from typing import Any

import typer

from escrowctl.commands import help as help_command
from escrowctl.commands import journal, tx
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending
from escrowctl.options import SharedCommand, SharedGroup
from escrowctl.session import Session, session_of


def _print_help_when_bare(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        session_of(context).console.data(context.get_help())


def _group(summary: str, **commands: Any) -> typer.Typer:
    group = typer.Typer(
        cls=SharedGroup,
        help=summary,
        invoke_without_command=True,
        callback=_print_help_when_bare,
        rich_markup_mode=None,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    for name, function in commands.items():
        group.command(name, cls=SharedCommand)(function)
    return group


def make_app() -> typer.Typer:
    """Return the whole tree."""
    app = _group(
        "The operator's tool for an escrow service. It never pays twice, and never says more than it knows.\n\n"
        "Without an account: escrowctl --sandbox tx create --amount 100 --currency USD",
        help=help_command.show,
    )
    app.add_typer(
        _group("Create, read and release escrow transactions.", create=tx.create, get=tx.get, release=tx.release),
        name="tx",
    )
    app.add_typer(
        _group("See what was written from here.", list=journal.list_entries, show=journal.show), name="journal"
    )
    return app


def run(argv: Sequence[str], session: Session) -> None:
    """Parse the line and run its command.

    Raises EscrowctlError (exit 2) for what cannot be parsed, and whatever the command raises.
    """
    command = typer.main.get_command(make_app())
    try:
        command.main(args=list(argv), prog_name="escrowctl", standalone_mode=False, obj=session)
    except typer.TyperException as error:
        raise EscrowctlError(
            ErrorCode.USAGE,
            f"{error.format_message().strip().rstrip('.')}. {NOTHING_SENT}",
            hint=_usage_hint(error),
            sending=Sending.NOT_SENT,
        ) from error


def _usage_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "escrowctl"
    return f"{path} --help"
