"""The script for fish 3."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
# fish completion for escrowctl: static, made by `escrowctl completion fish`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
function __escrowctl_cached --description 'names of a kind from the cache'
    set -l file "$XDG_CACHE_HOME/escrowctl"
    test -n "$XDG_CACHE_HOME"; or set file ~/.cache/escrowctl
    test -d ~/Library/Caches; and set file ~/Library/Caches/escrowctl
    test -n "$ESCROWCTL_HOME"; and set file $ESCROWCTL_HOME/cache
    set file $file/complete/$argv[1]
    test -f $file -a -r $file; or return
    set -l names (string match -r '^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$' <$file)
    printf '%s\\n' $names[1..500]
end
function __escrowctl_recent --description 'ids seen at the service of the command line'
    set -l scope @default
    test -n "$ESCROWCTL_PROFILE"; and set scope $ESCROWCTL_PROFILE
    set -l named
    for word in (commandline -opc)
        if test -n "$named"
            set scope $word
            set named
            continue
        end
        switch $word
            case -p --profile
                set named yes
            case '--profile=*'
                set scope (string replace -- --profile= '' $word)
            case --sandbox
                set scope @sandbox
        end
    end
    string match -qr '^@?[A-Za-z0-9_-]+$' -- "$scope"; or return
    __escrowctl_cached $scope/$argv[1]
end
function __escrowctl_at --description 'whether the command line is at this command'
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
        if node.cached:
            reader = "__escrowctl_cached" if node.cached == "profile" else "__escrowctl_recent"
            lines.append(f"{condition} -k -a '({reader} {node.cached})'")
        lines += [f"{condition} {_option(flag)}" for flag in node.flags]
    return "\n".join(lines) + "\n"


def _option(flag: Flag) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    value = ""
    if flag.is_file:
        value = " -r -F"
    elif flag.cached:
        value = f" -x -a '(__escrowctl_cached {flag.cached})'"
    elif flag.takes_value:
        value = f" -x -a {_quoted(' '.join(flag.choices))}" if flag.choices else " -x"
    return f"{names}{value} -d {_quoted(flag.summary)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
