"""The command tree as plain data, for completion scripts and the manual page."""

import inspect
from typing import Any, NamedTuple

from typer import Context

from escrowctl.config.settings import MODES
from escrowctl.contract.money import MINOR_DIGITS
from escrowctl.options import COLOR_CHOICES
from escrowctl.topics.topic import TOPICS

_EVENT_KINDS = (
    ("transaction.created", "money is held"),
    ("transaction.updated", "any other change of the escrow"),
    ("transaction.released", "the payee has the money"),
    ("transaction.expired", "the payer has the money again"),
)
"""The kinds of events that the sandbox sends. A real service may send other kinds."""

_OPTION_CHOICES = {
    "--event": tuple(name for name, _ in _EVENT_KINDS),
    "--color": COLOR_CHOICES,
    "--currency": tuple(sorted(MINOR_DIGITS)),
    "--expect-currency": tuple(sorted(MINOR_DIGITS)),
    "--mode": MODES,
}
_FILE_OPTIONS = frozenset({"--config", "--ready-file", "--results", "--secret-file"})
_CACHED_OPTIONS = {
    "--profile": "profile",
    "--allow-duplicate": "entry",
    "--tx": "transaction released",
    "webhook verify --event": "event",
}
"""Option, or command and option -> the kind of cached names to offer, instead of the option's choices."""

_CACHED_ARGUMENTS = {
    ("tx release", "ID"): "transaction",
    ("tx", "ID"): "transaction released",
    ("user", "ID"): "user",
    ("webhook replay", "EVENT"): "event",
    ("auth", "NAME"): "profile",
    ("journal", "ENTRY"): "entry",
    ("batch", "NAME"): "batch",
}
"""(Command or group, argument) -> the kind of cached names (`completion.cache`) to offer. "transaction released":
also the transactions that are released."""

_READ_ONLY_SETTINGS = {
    "profile": "the chosen profile",
    "ca_bundle": "from the environment",
    "proxy": "from the environment",
}
SHELLS = {"bash": "bash 4 and newer", "zsh": "zsh 5", "fish": "fish 3"}


class Flag(NamedTuple):
    """An option: its names, its help, and the values that it takes. `cached`: the kind of cached names to offer."""

    names: tuple[str, ...]
    summary: str
    takes_value: bool
    metavar: str = ""
    choices: tuple[str, ...] = ()
    is_file: bool = False
    cached: str | None = None


class Node(NamedTuple):
    """A command or group. `path` has its words, such as `("tx", "create")`.

    `text` is its complete help. `arguments` has the metavar and help of each argument. `words` are the words that
    may follow, with summaries. `cached` is a kind of cached names that may follow. `takes_file`: a file name may.
    """

    path: tuple[str, ...]
    summary: str
    flags: tuple[Flag, ...]
    text: str = ""
    usage: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    is_group: bool = False
    words: tuple[tuple[str, str], ...] = ()
    cached: str | None = None
    takes_file: bool = False

    @property
    def name(self) -> str:
        """The words of the path with spaces between them."""
        return " ".join(self.path)


# Typer's own types for commands are private.
def read_tree(command: Any, path: tuple[str, ...] = (), parent: Any = None) -> list[Node]:
    """Return `command` and every group and command below it, parents first.

    `path` has the words of `command`, and `parent` is the context of its group.
    """
    context = Context(command, parent=parent, info_name=path[-1] if path else "escrowctl", help_option_names=[])
    children = {name: command.get_command(context, name) for name in getattr(command, "commands", {})}
    parameters = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [(one.metavar, one.help) for one in parameters if one.param_type_name == "argument"]
    cache_keys = [(" ".join(path[:count]), metavar.strip("[].")) for metavar, _ in arguments for count in (2, 1)]
    node = Node(
        path=path,
        summary=_first_paragraph(command.help),
        flags=tuple(_make_flag(path, option) for option in parameters if option.param_type_name == "option"),
        text=inspect.cleandoc(command.help),
        usage=" ".join((context.command_path, *command.collect_usage_pieces(context))),
        arguments=tuple(arguments),
        is_group=bool(children),
        words=tuple((name, _first_paragraph(child.help)) for name, child in children.items())
        + _list_argument_choices(path, parent.command if parent else None),
        cached=next((_CACHED_ARGUMENTS[key] for key in cache_keys if key in _CACHED_ARGUMENTS), None),
        takes_file=any(metavar == "FILE" for metavar, _ in arguments),
    )
    return [node, *(one for name, child in children.items() for one in read_tree(child, (*path, name), context))]


def _list_argument_choices(path: tuple[str, ...], parent: Any) -> tuple[tuple[str, str], ...]:
    """Return the possible arguments of a command, with summaries. Empty if there is no fixed list."""
    match path:
        case ("completion", "install"):
            return tuple(SHELLS.items())
        case ("sandbox", "trigger"):
            return _EVENT_KINDS
        case ("help",):
            commands = {name: _first_paragraph(child.help) for name, child in parent.commands.items()}
            return tuple((commands | TOPICS).items())
        case ("config", "get" | "set" | "unset"):
            from escrowctl.config.profiles import ALL_SETTINGS  # noqa: PLC0415 - it imports pydantic

            # The caps are a table in which each currency is a setting.
            settings = [(name, field.description or "") for name, field in ALL_SETTINGS.items() if name != "caps"]
            return (*settings, *(_READ_ONLY_SETTINGS.items() if path[1] == "get" else ()))
        case _:
            return ()


def _make_flag(path: tuple[str, ...], option: Any) -> Flag:
    long = next((name for name in option.opts if name.startswith("--")), option.opts[0])
    cached = _CACHED_OPTIONS.get(" ".join((*path, long)), _CACHED_OPTIONS.get(long))
    return Flag(
        names=tuple(option.opts),
        summary=_first_paragraph(option.help),
        takes_value=not option.is_flag,
        metavar=option.metavar or "",
        choices=() if cached else tuple(getattr(option.type, "choices", _OPTION_CHOICES.get(long, ()))),
        is_file=long in _FILE_OPTIONS,
        cached=cached,
    )


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())
