"""The command tree: each command, and the function that carries it out.

The function is imported when its command is first looked up. So a run imports the function of one command only.
"""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import typer

from escrowctl.errors import ErrorCode, EscrowctlError, ExitCode, Hint, Hints, bad_value, command, not_sent
from escrowctl.options import SharedCommand, SharedGroup
from escrowctl.session import Session, session_of

_SUMMARY = """The operator's tool for an escrow service.

\b
Examples:
  escrowctl --sandbox tx create --amount 100 --currency USD
  escrowctl auth login
"""

NOUNS = {
    "tx": "Create, read and release escrow transactions.",
    "user": "Look users up.",
    "webhook": "Register endpoints; receive, check and repeat events.",
    "batch": "Send files of creates and releases, and resume them.",
    "journal": "List this machine's writes, and resolve unknown outcomes.",
    "auth": "Store, check and switch API keys.",
    "config": "See and change settings.",
    "sandbox": "Serve, inspect and empty the built-in sandbox; set faults.",
    "completion": "Print or install completion scripts for shells.",
}
"""Maps a noun to its summary."""

COMMANDS = {
    "tx create": "tx.create.create",
    "tx get": "read.get_transactions",
    "tx release": "tx.release.release",
    "tx list": "tx.listing.list_transactions",
    "tx update": "tx.update.update",
    "tx wait": "tx.wait.wait",
    "tx watch": "tx.wait.watch",
    "user get": "read.get_users",
    "webhook create": "webhook.endpoints.create",
    "webhook list": "webhook.endpoints.list_webhooks",
    "webhook listen": "webhook.listen.listen",
    "webhook verify": "webhook.verify.verify",
    "webhook replay": "webhook.replay.replay",
    "batch create": "batch.sending.create",
    "batch release": "batch.sending.release",
    "batch resume": "batch.sending.resume",
    "batch work": "batch.sending.work",
    "batch list": "batch.listing.list_all",
    "batch show": "batch.listing.show",
    "batch rejects": "batch.listing.rejects",
    "batch drop": "batch.listing.drop",
    "journal list": "journal.listing.list_entries",
    "journal show": "journal.listing.show",
    "journal resolve": "journal.resolve.resolve",
    "journal totals": "journal.listing.totals",
    "journal verify": "journal.transfer.verify_journal",
    "journal init": "journal.init.init",
    "journal open": "journal.init.open_for_creates",
    "journal export": "journal.transfer.export",
    "journal import": "journal.transfer.import_file",
    "auth login": "auth.login.login",
    "auth logout": "auth.profiles.logout",
    "auth status": "auth.profiles.status",
    "auth switch": "auth.profiles.switch",
    "config path": "config.path",
    "config list": "config.list_all",
    "config get": "config.get",
    "config set": "config.set_value",
    "config unset": "config.unset",
    "sandbox serve": "sandbox.service.serve",
    "sandbox status": "sandbox.service.status",
    "sandbox reset": "sandbox.service.reset",
    "sandbox set": "sandbox.rehearsal.set_values",
    "sandbox magic": "sandbox.rehearsal.magic",
    "sandbox move": "sandbox.rehearsal.move",
    "sandbox ledger": "sandbox.rehearsal.ledger",
    "sandbox clock": "sandbox.deliveries.clock",
    "sandbox trigger": "sandbox.deliveries.trigger",
    "sandbox deliveries": "sandbox.deliveries.deliveries",
    "api": "api.call",
    "doctor": "doctor.examine",
    "completion bash": "completion.print_script",
    "completion zsh": "completion.print_script",
    "completion fish": "completion.print_script",
    "completion install": "completion.install",
    "help": "help.show",
    "version": "version.show",
}
"""Maps each command to the path of its function in `escrowctl.commands`, in the order of the help."""

_MISTAKEN_KEY_OPTIONS = frozenset(
    {"--api-key", "--apikey", "--key", "--token", "--with-token", "--secret", "--secret-key", "--password", "--bearer"}
)
"""Options that people try for the API key. escrowctl has none of them."""

_KEY_NOT_ACCEPTED = "API keys are not accepted on the command line: they would show in ps and in shell history"

_KEY_HINTS = (
    command("auth login", "to type the key", bare=True),
    Hint("set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY", "in a job"),
)

# Help is one of the shared options: the help option of Typer does not write through the console.
_CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": []}


class _LazyGroup(SharedGroup):
    """A group whose commands are created when they are first looked up."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as Typer calls it
        """Return the command `cmd_name`, or None if there is no such command."""
        found: Any = self.commands.get(cmd_name)
        if isinstance(found, partial):
            found = self.commands[cmd_name] = found()
        return found


def _make_command(name: str, function_path: str) -> Any:
    """Return the command `name`. `function_path` names its function, such as `tx.create.create`."""
    module, _, function = function_path.rpartition(".")
    group, carry_out = _make_typer_app(""), getattr(import_module(f"escrowctl.commands.{module}"), function)
    group.command(name, cls=SharedCommand, context_settings=_CONTEXT_SETTINGS)(carry_out)
    made: Any = typer.main.get_command(group)
    return made.commands[name]


def _make_group(summary: str, command_makers: dict[str, partial[Any]]) -> Any:
    group: Any = typer.main.get_command(_make_typer_app(summary))
    group.commands = command_makers
    return group


def _make_noun_group(noun: str) -> Any:
    verbs = {name.partition(" ")[2]: path for name, path in COMMANDS.items() if name.startswith(f"{noun} ")}
    group = _make_group(NOUNS[noun], {verb: partial(_make_command, verb, path) for verb, path in verbs.items()})
    group.name = noun
    return group


def _make_typer_app(summary: str) -> typer.Typer:
    return typer.Typer(
        cls=_LazyGroup,
        help=summary,
        invoke_without_command=True,
        callback=_print_group_help,
        rich_markup_mode=None,
        add_completion=False,
        context_settings=_CONTEXT_SETTINGS,
        pretty_exceptions_enable=False,
    )


def _print_group_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        session_of(context).console.write_page(context.get_help())


def make_tree() -> Any:
    """Return the complete command tree as a Typer group."""
    makers: dict[str, partial[Any]] = {}
    for name, path in COMMANDS.items():
        first, _, verb = name.partition(" ")
        makers[first] = partial(_make_noun_group, first) if verb else partial(_make_command, first, path)
    return _make_group(_SUMMARY, makers)


def run(argv: Sequence[str], session: Session) -> int:
    """Parse `argv` and run its command. Return the command's exit code, or `OK` if it returns none.

    Raises EscrowctlError `USAGE` or `BAD_VALUE` if `argv` cannot be parsed, and every error of the command.
    """
    tree = make_tree()
    try:
        # If the variable `complete_var` is set, Typer prints its own completion. No variable can be named "=".
        ended = tree.main(args=list(argv), prog_name="escrowctl", complete_var="=", standalone_mode=False, obj=session)
    except typer.TyperException as error:
        raise _convert_typer_error(error, session) from error
    return ended if isinstance(ended, int) else ExitCode.OK


def _convert_typer_error(error: typer.TyperException, session: Session) -> EscrowctlError:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else session.command or "escrowctl"
    hint: Hints = command(f"{path} --help".removeprefix("escrowctl "), bare=True)
    option = getattr(error, "option_name", None)
    if option in _MISTAKEN_KEY_OPTIONS:
        message, hint = f"there is no option {option}. {_KEY_NOT_ACCEPTED}", _KEY_HINTS
    elif "extra argument" in message and path == "escrowctl auth login":
        # The extra word may be a key: it is not shown again.
        message, hint = f"auth login takes options only. {_KEY_NOT_ACCEPTED}", _KEY_HINTS
    parameter = getattr(error, "param", None)
    if type(error) is typer.BadParameter and parameter is not None:
        parameter_name = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
        return bad_value(f"{parameter_name} {error.message}", hint=hint)
    message = message.strip()
    return not_sent(ErrorCode.USAGE, message if message.endswith((".", "?")) else f"{message}.", hint=hint)
