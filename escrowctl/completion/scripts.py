"""Makes the scripts for bash 4 and newer, zsh 5 and fish 3: fills the command tree into escrowctl.SHELL.

The words of the tree are quoted in the scripts, so that the shell never expands a word.
"""

from pathlib import Path

from escrowctl.completion.cache import JOURNAL_KINDS
from escrowctl.completion.tree import Flag, Node

_VALUE_CODES = {
    # Readline completes file names itself.
    "bash": ("compopt -o default 2>/dev/null", "_escrowctl_cached {}", "_escrowctl_offer '{}'", ""),
    "zsh": ("_files; return", "_escrowctl_cached {}; return", "compadd -- {}; return", "return"),
    # The tab gives each value an empty description. Otherwise fish would show the description of the option.
    "fish": (" -r -F", " -x -a '({})\\t'", " -x -a '{{{}}}\\t'", " -x"),
}
"""Shell -> code that offers the values of an option: files, names from the cache, a list, nothing."""


def render(shell: str, nodes: list[Node]) -> str:
    """Return the script that completes these commands in `bash`, `zsh` or `fish`."""
    flags = {flag.names: flag for node in nodes for flag in node.flags}.values()
    valued = [flag for flag in flags if flag.takes_value]
    command = {"bash": _render_in_bash, "zsh": _render_in_zsh, "fish": _render_in_fish}[shell]
    separator = " " if shell == "fish" else " | "
    parts = {
        "@VALUED@": separator.join(name for flag in valued for name in flag.names),
        "@PATHS@": separator.join(_quote(node.name) for node in nodes if node.path),
        "# @VALUES@": "\n    ".join(
            f"{' | '.join(flag.names)}) {_offer_values(shell, flag.names, nodes)} ;;" for flag in valued
        ),
        "# @COMMANDS@": "\n".join(line for node in nodes for line in command(node)).lstrip(),
    }
    script = (Path(__file__).parent / f"escrowctl.{shell}").read_text("utf-8")
    for name, part in parts.items():
        script = script.replace(name, part)
    return script


def _offer_values(shell: str, names: tuple[str, ...], nodes: list[Node]) -> str:
    """Return the bash or zsh code that offers an option's values. The values may depend on the command."""
    code_by_command = {
        node.name: _offer_value(shell, flag) for node in nodes for flag in node.flags if flag.names == names
    }
    usual = next(iter(code_by_command.values()))
    others = [f"{_quote(command)}) {code} ;;" for command, code in code_by_command.items() if code != usual]
    path = {"bash": "$path", "zsh": "$path_"}.get(shell, "")
    return " ".join([f"case {path} in", *others, f"*) {usual} ;; esac"]) if others else usual


def _offer_value(shell: str, flag: Flag) -> str:
    files, cached, choices, nothing = _VALUE_CODES[shell]
    if flag.is_file:
        return files
    if flag.cached:
        return cached.format(_make_fish_reader(flag.cached) if shell == "fish" else _find_cache_file(flag.cached))
    separator = "," if shell == "fish" else " "
    return choices.format(separator.join(flag.choices)) if flag.choices else nothing


def _render_in_bash(node: Node) -> list[str]:
    words = " ".join(name for name, _ in node.words)
    flags = " ".join(name for flag in node.flags for name in flag.names)
    # Readline completes file names only if nothing else is offered.
    offers = [
        *([f"_escrowctl_offer {_quote(words)}"] if words else []),
        *([_VALUE_CODES["bash"][0]] if node.takes_file else []),
        *([f"_escrowctl_cached {_find_cache_file(node.cached)}"] if node.cached else []),
    ]
    return [
        f"        {_quote(node.name)})",
        "          if [[ $cur == -* && -z $only ]]; then",
        f"            _escrowctl_offer {_quote(flags)}",
        *(["          else", *(f"            {line}" for line in offers)] if offers else []),
        "          fi",
        "          ;;",
    ]


def _render_in_zsh(node: Node) -> list[str]:
    flags = [(name, flag.summary) for flag in node.flags for name in flag.names]
    lines = [f"    {_quote(node.name)})"]
    for array, described in (("commands", node.words), ("flags", flags)):
        items = [name + ":" + _escape_backslashes(text).replace(":", "\\:") for name, text in described]
        lines += [f"      {array}=(", *(f"        {_quote(item)}" for item in items), "      )"]
    if node.cached:
        lines.append(f"      [[ $PREFIX == -* && -z $only ]] || _escrowctl_cached {_find_cache_file(node.cached)}")
    if node.takes_file:
        lines.append("      [[ $PREFIX == -* && -z $only ]] || _files")
    return [*lines, "      ;;"]


def _render_in_fish(node: Node) -> list[str]:
    """Return the `complete` lines of a command: its words, cached names, files and options."""
    condition = f"complete -c escrowctl -n {_quote(' '.join(('__escrowctl_at', *node.path)))}"
    lines = [f"{condition} -a {name} -d {_quote(_escape_backslashes(summary))}" for name, summary in node.words]
    if node.cached:
        lines.append(f"{condition} -k -a '({_make_fish_reader(node.cached)})'")
    if node.takes_file:
        lines.append(f"{condition} -F")
    for flag in node.flags:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
        value = _offer_value("fish", flag) if flag.takes_value else ""
        lines.append(f"{condition} {names}{value} -d {_quote(_escape_backslashes(flag.summary))}")
    return lines


def _find_cache_file(kind: str) -> str:
    """Return the cache file for a kind of names, as code for bash and zsh. `$scope` is the profile's folder."""
    if kind in JOURNAL_KINDS:
        return f'"${{scope/#[^@]*/@default}}/{kind}"'
    name, also, released = kind.partition(" ")
    return kind if kind == "profile" else f'"$scope/{name}"{also}{released}'


def _make_fish_reader(kind: str) -> str:
    """Return the fish command that reads the cached names of this kind."""
    name = "in_journal" if kind in JOURNAL_KINDS else "cached" if kind == "profile" else "recent"
    return f"__escrowctl_{name} {kind}"


def _escape_backslashes(text: str) -> str:
    return text.replace("\\", "\\\\")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
