"""The script for fish 3."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
# fish completion for escrowctl: static, made by `escrowctl completion fish`.
function __escrowctl_at --description 'whether the line has come to just this command'
    set -l path
    set -l skip
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip
            continue
        end
        switch $word
"""


def render(nodes: list[Node]) -> str:
    """Return the script: one `complete` a candidate, each with its help."""
    flags = {flag.names: flag for node in nodes for flag in node.flags}.values()
    valued = " ".join(name for flag in flags for name in flag.names if flag.takes_value)
    known = " ".join(_quoted(node.name) for node in nodes if node.path)
    lines = [_HEAD.rstrip("\n"), f"            case {valued}", "                set skip yes", "            case '-*'"]
    lines += ["            case '*'", '                set -l longer (string join " " $path $word)']
    lines += [f"                if contains -- $longer {known}", "                    set path $path $word"]
    lines += ["                end", "        end", "    end", '    test "$path" = "$argv"', "end"]
    lines.append("complete -c escrowctl -f")
    for node in nodes:
        condition = f"complete -c escrowctl -n {_quoted(' '.join(('__escrowctl_at', *node.path)))}"
        lines += [f"{condition} -a {name} -d {_quoted(summary)}" for name, summary in node.words]
        lines += [f"{condition} {_option(flag)}" for flag in node.flags]
    return "\n".join(lines) + "\n"


def _option(flag: Flag) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    value = ""
    if flag.is_file:
        value = " -r -F"
    elif flag.takes_value:
        value = f" -x -a {_quoted(' '.join(flag.choices))}" if flag.choices else " -x"
    return f"{names}{value} -d {_quoted(flag.summary)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
