"""The command tree: each command, and the function that carries it out.

The function is imported when its command is first looked up. So a run imports only the function of its own command.
"""

import shlex
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

NOUNS: dict[str, tuple[str, dict[str, str]]] = {
    "tx": (
        "Create, read and release escrow transactions.",
        {
            "create": "tx.create.create",
            "get": "read.get_transactions",
            "release": "tx.release.release",
            "list": "tx.listing.list_transactions",
            "update": "tx.update.update",
            "wait": "tx.wait.wait",
            "watch": "tx.wait.watch",
        },
    ),
    "user": ("Look users up.", {"get": "read.get_users"}),
    "webhook": (
        "Register endpoints; receive, check and repeat events.",
        {
            "create": "webhook.endpoints.create",
            "list": "webhook.endpoints.list_webhooks",
            "listen": "webhook.listen.listen",
            "verify": "webhook.verify.verify",
            "replay": "webhook.replay.replay",
        },
    ),
    "batch": (
        "Send files of creates and releases, and resume them.",
        {
            "create": "batch.sending.create",
            "release": "batch.sending.release",
            "resume": "batch.sending.resume",
            "list": "batch.listing.list_all",
            "show": "batch.listing.show",
            "rejects": "batch.listing.rejects",
            "drop": "batch.listing.drop",
        },
    ),
    "journal": (
        "List this machine's writes, and resolve unknown outcomes.",
        {
            "list": "journal.listing.list_entries",
            "show": "journal.listing.show",
            "resolve": "journal.resolve.resolve",
            "totals": "journal.listing.totals",
            "verify": "journal.transfer.verify_journal",
            "init": "journal.transfer.init",
            "export": "journal.transfer.export",
            "import": "journal.transfer.import_file",
        },
    ),
    "auth": (
        "Store, check and switch API keys.",
        {
            "login": "auth.login.login",
            "logout": "auth.profiles.logout",
            "status": "auth.profiles.status",
            "switch": "auth.profiles.switch",
        },
    ),
    "config": (
        "See and change settings.",
        {
            "path": "config.path",
            "list": "config.list_all",
            "get": "config.get",
            "set": "config.set_value",
            "unset": "config.unset",
        },
    ),
    "sandbox": (
        "Serve, inspect and empty the built-in sandbox; set faults.",
        {
            "serve": "sandbox.service.serve",
            "status": "sandbox.service.status",
            "reset": "sandbox.service.reset",
            "set": "sandbox.rehearsal.set_values",
            "magic": "sandbox.rehearsal.magic",
            "move": "sandbox.rehearsal.move",
            "ledger": "sandbox.rehearsal.ledger",
            "clock": "sandbox.deliveries.clock",
            "trigger": "sandbox.deliveries.trigger",
            "deliveries": "sandbox.deliveries.deliveries",
        },
    ),
    "completion": (
        "Print or install completion scripts for shells.",
        {
            "bash": "completion.print_bash",
            "zsh": "completion.print_zsh",
            "fish": "completion.print_fish",
            "install": "completion.install",
        },
    ),
}
"""Maps a noun to its summary and its verbs, and each verb to the path of its function in `escrowctl.commands`."""

_COMMANDS_WITHOUT_NOUN = {"api": "api.call", "doctor": "doctor.examine", "help": "help.show", "version": "version.show"}
"""Maps each command without a noun to the path of its function in `escrowctl.commands`."""

_LAST_COMMANDS = frozenset({"completion", "help", "version"})
"""Commands about the program itself. Help lists them after all other commands."""

_LOCAL_COMMANDS = (
    *("help", "version", "config", "completion", "sandbox", "auth switch", "auth logout", "webhook verify"),
    *("batch list", "batch show", "batch rejects", "batch drop"),
    *(f"journal {verb}" for verb in NOUNS["journal"][1] if verb != "resolve"),
)

_MISTAKEN_KEY_OPTIONS = frozenset(
    {"--api-key", "--apikey", "--key", "--token", "--with-token", "--secret", "--secret-key", "--password", "--bearer"}
)
"""Options that people try for the API key. escrowctl has none of them."""

_MISTAKEN_JSON_OPTIONS = frozenset({"--output", "-o", "--format"})
"""Options of other programs that people try in place of `--json`."""

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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return (name, command, other words) for the command `args[0]`. Raises `USAGE` if there is none."""
        # Typer itself reports an unknown option.
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise _make_unknown_command_error(ctx.command_path.split()[1:], args)
        return super().resolve_command(ctx, args)


def _make_command(name: str, function_path: str) -> Any:
    """Return the command `name`. `function_path` names its function, such as `tx.create.create`."""
    module, _, function = function_path.rpartition(".")
    group = _make_typer_app("")
    group.command(name, cls=SharedCommand, context_settings=_CONTEXT_SETTINGS)(
        getattr(import_module(f"escrowctl.commands.{module}"), function)
    )
    made: Any = typer.main.get_command(group)
    return made.commands[name]


def _make_group(summary: str, command_makers: dict[str, partial[Any]]) -> Any:
    group: Any = typer.main.get_command(_make_typer_app(summary))
    group.commands = command_makers
    return group


def _make_noun_group(noun: str) -> Any:
    summary, verbs = NOUNS[noun]
    group = _make_group(summary, {verb: partial(_make_command, verb, path) for verb, path in verbs.items()})
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
    makers = {noun: partial(_make_noun_group, noun) for noun in NOUNS}
    makers |= {name: partial(_make_command, name, path) for name, path in _COMMANDS_WITHOUT_NOUN.items()}
    return _make_group(_SUMMARY, {name: makers[name] for name in sorted(makers, key=_LAST_COMMANDS.__contains__)})


def is_local(command_path: str) -> bool:
    """Whether a command, such as `escrowctl config set`, sends nothing to a service."""
    return f"{command_path} ".startswith(tuple(f"escrowctl {one} " for one in _LOCAL_COMMANDS))


def list_known_words() -> frozenset[str]:
    """Return every command and option name of the tree."""
    from escrowctl.completion.tree import read_tree  # noqa: PLC0415 - for crash reports only

    nodes = read_tree(make_tree())
    flags = {name for node in nodes for flag in node.flags for name in flag.names}
    return frozenset(flags | {word for node in nodes for word in node.path})


def run(argv: Sequence[str], session: Session) -> int:
    """Parse `argv` and run its command. Return the command's exit code, or `OK` if it returns none.

    Raises EscrowctlError `USAGE` or `BAD_VALUE` if `argv` cannot be parsed, and every error of the command.
    """
    tree = make_tree()
    # If the variable with this name is set, Typer prints its own completion. No variable can be named "=".
    no_variable = "="
    try:
        ended = tree.main(
            args=list(argv), prog_name="escrowctl", complete_var=no_variable, standalone_mode=False, obj=session
        )
    except typer.TyperException as error:
        raise _convert_typer_error(error, argv, session) from error
    return ended if isinstance(ended, int) else ExitCode.OK


def _make_unknown_command_error(group: list[str], words: list[str]) -> EscrowctlError:
    from escrowctl.suggestions import suggest_command  # noqa: PLC0415 - for mistakes only

    tree: dict[str, tuple[str, ...]] = {noun: tuple(verbs) for noun, (_, verbs) in NOUNS.items()}
    meant = suggest_command([*group, *words], tree | dict.fromkeys(_COMMANDS_WITHOUT_NOUN, ()))
    # `auth login` is suggested without the -p and --sandbox of the mistyped line.
    hint = (
        command(meant, "did you mean", bare=meant.startswith("auth "))
        if meant
        else command(" ".join((*group, "--help")), bare=True)
    )
    return not_sent(ErrorCode.USAGE, f'there is no command "{" ".join((*group, words[0]))}".', hint=hint, effect=None)


def _convert_typer_error(error: typer.TyperException, argv: Sequence[str], session: Session) -> EscrowctlError:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else session.command or "escrowctl"
    hint: Hints = command(f"{path} --help".removeprefix("escrowctl "), bare=True)
    option = getattr(error, "option_name", None)
    if option in _MISTAKEN_JSON_OPTIONS:
        from escrowctl.suggestions import suggest_json  # noqa: PLC0415 - for mistakes only

        meant = suggest_json(argv, option)
        hint = command(shlex.join(meant), "did you mean", bare=True) if meant else command("help options", bare=True)
        message = f"there is no option {option}"
    elif option in _MISTAKEN_KEY_OPTIONS:
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
