"""The scripts for bash 4 and newer, zsh 5 and fish 3: the command tree, filled into escrowctl.SHELL in this folder.

All their words come from the program; the shell never expands one.
"""

from pathlib import Path

from escrowctl.completion.cache import IN_JOURNAL
from escrowctl.completion.tree import Flag, Node

_VALUES = {
    # Readline completes file names itself.
    "bash": ("compopt -o default 2>/dev/null", "_escrowctl_cached {}", "_escrowctl_offer '{}'", ""),
    "zsh": ("_files; return", "_escrowctl_cached {}; return", "compadd -- {}; return", "return"),
    # A tab and no description: fish would put the option's own next to each value.
    "fish": (" -r -F", " -x -a '({})\\t'", " -x -a '{{{}}}\\t'", " -x"),
}
"""Shell -> its code that offers the values of an option: files, names from the cache, a list, nothing."""


def render(shell: str, nodes: list[Node]) -> str:
    """Return the script for `bash`, `zsh` or `fish`."""
    flags = {flag.names: flag for node in nodes for flag in node.flags}.values()
    valued = [flag for flag in flags if flag.takes_value]
    command = {"bash": _command_in_bash, "zsh": _command_in_zsh, "fish": _command_in_fish}[shell]
    separator = " " if shell == "fish" else " | "
    parts = {
        "@VALUED@": separator.join(name for flag in valued for name in flag.names),
        "@PATHS@": separator.join(_quoted(node.name) for node in nodes if node.path),
        "# @VALUES@": "\n    ".join(
            f"{' | '.join(flag.names)}) {_values(shell, flag.names, nodes)} ;;" for flag in valued
        ),
        "# @COMMANDS@": "\n".join(line for node in nodes for line in command(node)).lstrip(),
    }
    script = (Path(__file__).parent / f"escrowctl.{shell}").read_text("utf-8")
    for name, part in parts.items():
        script = script.replace(name, part)
    return script


def _values(shell: str, names: tuple[str, ...], nodes: list[Node]) -> str:
    """Return the code of bash or zsh that offers an option's values, by command if commands differ."""
    taking = {node.name: _value(shell, flag) for node in nodes for flag in node.flags if flag.names == names}
    usual = next(iter(taking.values()))
    others = [f"{_quoted(command)}) {value} ;;" for command, value in taking.items() if value != usual]
    path = {"bash": "$path", "zsh": "$path_"}.get(shell, "")
    return " ".join([f"case {path} in", *others, f"*) {usual} ;; esac"]) if others else usual


def _value(shell: str, flag: Flag) -> str:
    files, cached, choices, nothing = _VALUES[shell]
    if flag.is_file:
        return files
    if flag.cached:
        return cached.format(_reader(flag.cached) if shell == "fish" else _place(flag.cached))
    between = "," if shell == "fish" else " "
    return choices.format(between.join(flag.choices)) if flag.choices else nothing


def _command_in_bash(node: Node) -> list[str]:
    words = " ".join(name for name, _ in node.words)
    flags = " ".join(name for flag in node.flags for name in flag.names)
    # Readline completes file names only if nothing else is offered.
    offers = [
        *([f"_escrowctl_offer {_quoted(words)}"] if words else []),
        *([_VALUES["bash"][0]] if node.takes_file else []),
        *([f"_escrowctl_cached {_place(node.cached)}"] if node.cached else []),
    ]
    return [
        f"        {_quoted(node.name)})",
        "          if [[ $cur == -* && -z $only ]]; then",
        f"            _escrowctl_offer {_quoted(flags)}",
        *(["          else", *(f"            {line}" for line in offers)] if offers else []),
        "          fi",
        "          ;;",
    ]


def _command_in_zsh(node: Node) -> list[str]:
    flags = [(name, flag.summary) for flag in node.flags for name in flag.names]
    lines = [f"    {_quoted(node.name)})"]
    for array, described in (("commands", node.words), ("flags", flags)):
        items = [name + ":" + _escaped(text).replace(":", "\\:") for name, text in described]
        lines += [f"      {array}=(", *(f"        {_quoted(item)}" for item in items), "      )"]
    if node.cached:
        lines.append(f"      [[ $PREFIX == -* && -z $only ]] || _escrowctl_cached {_place(node.cached)}")
    if node.takes_file:
        lines.append("      [[ $PREFIX == -* && -z $only ]] || _files")
    return [*lines, "      ;;"]


def _command_in_fish(node: Node) -> list[str]:
    """Return one `complete` line for each candidate, with its help."""
    condition = f"complete -c escrowctl -n {_quoted(' '.join(('__escrowctl_at', *node.path)))}"
    lines = [f"{condition} -a {name} -d {_quoted(_escaped(summary))}" for name, summary in node.words]
    if node.cached:
        lines.append(f"{condition} -k -a '({_reader(node.cached)})'")
    if node.takes_file:
        lines.append(f"{condition} -F")
    for flag in node.flags:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
        value = _value("fish", flag) if flag.takes_value else ""
        lines.append(f"{condition} {names}{value} -d {_quoted(_escaped(flag.summary))}")
    return lines


def _place(kind: str) -> str:
    """Return the file in the cache that bash and zsh read for a kind. `$scope` is the profile's folder."""
    if kind in IN_JOURNAL:
        return f'"${{scope/#[^@]*/@default}}/{kind}"'
    return kind if kind == "profile" else f'"$scope/{kind}"'


def _reader(kind: str) -> str:
    """Return the fish command that reads the names of a kind."""
    name = "in_journal" if kind in IN_JOURNAL else "cached" if kind == "profile" else "recent"
    return f"__escrowctl_{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
