"""The command tree: which command stands where. No logic.

A noun's commands are imported when somebody looks at them, so that the help of the tree, usage
errors and the other nouns do not pay for them.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from escrowctl.commands import api
from escrowctl.commands import help as help_command
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.exits import ExitCode
from escrowctl.options import SharedCommand, SharedGroup
from escrowctl.session import Session, session_of

_SUMMARY = """The operator's tool for an escrow service.

It never pays twice, and never says more than it knows.

\b
Without an account:
  escrowctl --sandbox tx create --amount 100 --currency USD
"""

NOUNS: dict[str, tuple[str, dict[str, str]]] = {
    "tx": (
        "Create, read and release escrow transactions.",
        {
            "create": "tx.create",
            "get": "tx.get",
            "release": "tx.release",
            "list": "tx.list_transactions",
            "update": "tx.update",
        },
    ),
    "user": ("Look users up.", {"get": "user.get"}),
    "webhook": ("Register and list webhook endpoints.", {"create": "webhook.create", "list": "webhook.list_webhooks"}),
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
        "Serve, inspect and empty the built-in sandbox.",
        {"serve": "sandbox.serve", "status": "sandbox.status", "reset": "sandbox.reset"},
    ),
    "completion": (
        "Print or install the completion scripts of the shells.",
        {
            "bash": "completion.print_bash",
            "zsh": "completion.print_zsh",
            "fish": "completion.print_fish",
            "install": "completion.install",
        },
    ),
    "journal": (
        "See what was written from here, and settle what is unknown.",
        {
            "list": "journal.list_entries",
            "show": "journal.show",
            "resolve": "resolution.resolve",
            "totals": "journal.totals",
            "verify": "archive.verify_journal",
            "export": "archive.export",
            "import": "archive.import_file",
        },
    ),
}
"""Noun -> its summary, and its verbs with the function in `escrowctl.commands` that does each."""


_KEY_OPTIONS = frozenset(
    {"--api-key", "--apikey", "--key", "--token", "--with-token", "--secret", "--secret-key", "--password", "--bearer"}
)
"""Options that users expect to take the key; there is none."""

_RENAMED = {"--despite": "--allow-duplicate", "--unread": "--allow-unreadable", "--ok-if-released": "--skip-released"}
"""Option names of earlier versions, and what they are called now."""

_NO_KEY_HERE = "API keys are not accepted on the command line: they would show in ps and in shell history"
_WAYS_OF_A_KEY = (
    "escrowctl auth login asks for it",
    'in a pipe:  printf %s "$KEY" | escrowctl auth login ...',
    "in a job:   set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY",
)

# Help is one of the shared options: Typer's own would write past the console.
_SETTINGS: dict[str, Any] = {"help_option_names": []}


class _NounGroup(SharedGroup):
    """A group that imports its verbs when they are first looked at."""

    verbs: dict[str, str]
    _loaded: dict[str, Any] | None = None

    @property  # type: ignore[override] # Typer's attribute, filled late
    def commands(self) -> dict[str, Any]:
        """The commands by name."""
        if self._loaded is None:
            self._loaded = _load(self.verbs)
        return self._loaded

    @commands.setter
    def commands(self, _empty: dict[str, Any]) -> None:
        """Typer sets none while it builds the tree."""


def _load(verbs: dict[str, str]) -> dict[str, Any]:
    group = _make_typer(SharedGroup, "")
    for verb, place in verbs.items():
        module, _, function = place.rpartition(".")
        found = getattr(import_module(f"escrowctl.commands.{module}"), function)
        group.command(verb, cls=SharedCommand, context_settings=_SETTINGS)(found)
    loaded: Any = typer.main.get_command(group)
    return dict(loaded.commands)


def _make_typer(group: type[SharedGroup], summary: str) -> typer.Typer:
    return typer.Typer(
        cls=group,
        help=summary,
        invoke_without_command=True,
        callback=_print_help_when_bare,
        rich_markup_mode=None,
        add_completion=False,
        context_settings=_SETTINGS,
        pretty_exceptions_enable=False,
    )


def _print_help_when_bare(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        session_of(context).console.data(context.get_help())


def make_app() -> typer.Typer:
    """Return the whole tree."""
    app = _make_typer(SharedGroup, _SUMMARY)
    for noun, (summary, verbs) in NOUNS.items():
        app.add_typer(_make_typer(type(f"{noun}_group", (_NounGroup,), {"verbs": verbs}), summary), name=noun)
    for name, function in (("api", api.call), ("help", help_command.show)):
        app.command(name, cls=SharedCommand, context_settings=_SETTINGS)(function)
    return app


def list_words() -> frozenset[str]:
    """Return every command and option name of the tree."""
    from escrowctl.completion.tree import read_tree  # noqa: PLC0415 - for who asks

    nodes = read_tree(typer.main.get_command(make_app()))
    flags = {name for node in nodes for flag in node.flags for name in flag.names}
    return frozenset(flags | {word for node in nodes for word in node.path})


def run(argv: Sequence[str], session: Session) -> None:
    """Parse the line and run its command.

    Raises EscrowctlError (exit 2) for what cannot be parsed, KeyboardInterrupt where a command that
    Ctrl-C is meant to end has told so, and whatever the command raises.
    """
    command = typer.main.get_command(make_app())
    # Typer's own completion would take the run over where _ESCROWCTL_COMPLETE is set. No variable has this name.
    no_variable = "="
    try:
        ended = command.main(
            args=list(argv), prog_name="escrowctl", complete_var=no_variable, standalone_mode=False, obj=session
        )
    except typer.TyperException as error:
        raise _as_expected(error) from error
    if ended == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt


def _as_expected(error: typer.TyperException) -> EscrowctlError:
    message = error.format_message()
    hint: tuple[str, ...] = (_usage_hint(error),)
    option = getattr(error, "option_name", None)
    if option in _RENAMED:
        message = f"{option} is now {_RENAMED[option]}"
    elif option in _KEY_OPTIONS:
        message, hint = f"there is no {option}. {_NO_KEY_HERE}", _WAYS_OF_A_KEY
    elif "extra argument" in message and hint == ("escrowctl auth login --help",):
        # What was typed may be a key: it is not repeated.
        message, hint = f"auth login takes only options. {_NO_KEY_HERE}", _WAYS_OF_A_KEY
    return not_sent(ErrorCode.USAGE, f"{_sentence(message)}", hint=hint)


def _sentence(message: str) -> str:
    text = message.strip()
    return text if text.endswith((".", "?")) else f"{text}."


def _usage_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "escrowctl"
    return f"{path} --help"
