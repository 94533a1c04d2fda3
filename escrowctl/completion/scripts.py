"""The scripts for bash 4 and newer, zsh 5 and fish 3: one text a shell, with the command tree filled in.

All their words come from the program; the shell never expands one.
"""

from escrowctl.completion.cache import IN_JOURNAL
from escrowctl.completion.tree import Flag, Node

_BASH = """\
# bash completion for escrowctl: static, made by `escrowctl completion bash`.
@NOTE@
_escrowctl_offer() {
  local word
  for word in $1; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$start$word")
  done
}
_escrowctl_find() {
  file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache}
@FILE@
  [[ -f $file && -r $file && -O $file ]]
}
_escrowctl_cached() {
  local file line lines
  _escrowctl_find "$1" || return
  mapfile -t -n 500 lines <"$file"
  for line in "${lines[@]}"; do
    [[ $line == "$cur"* && $line == [!-]* && $line != *[!A-Za-z0-9_-]* ]] || continue
    ((${#line} <= 128)) && COMPREPLY+=("$start$line")
  done
}
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} start= path= skip= only= word i
  local scope=${ESCROWCTL_PROFILE:-@default} file LC_ALL=C IFS=$' \\t\\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == = ]]; then
      skip=${skip:-value}
      [[ ${COMP_WORDS[i - 1]} == --profile ]] && skip=profile
      continue
    elif [[ $skip ]]; then
      [[ $skip == profile && $word =~ ^[A-Za-z0-9_-]+$ ]] && scope=$word
      skip=
      continue
    fi
@SCOPE@
      @VALUED@) skip=value ;;
      -*) ;;
      *)
        case "${path:+$path }$word" in
          @PATHS@) path="${path:+$path }$word" ;;
        esac
        ;;
    esac
  done
  [[ $scope == @default && -z $ESCROWCTL_BASE_URL ]] && _escrowctl_find default && read -r -n 64 scope <"$file"
  [[ $scope =~ ^@?[A-Za-z0-9_-]+$ ]] || scope=@default
  if [[ $cur == = ]]; then
    cur=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $cur == --*=* ]]; then
    option=${cur%%=*} start=${cur%%=*}= cur=${cur#*=}
  fi
  [[ $only ]] && option=
  case $option in
@VALUES@
    *)
      case $path in
@COMMANDS@
      esac
      ;;
  esac
}
complete -F _escrowctl escrowctl
"""

_ZSH = """\
#compdef escrowctl
# zsh completion for escrowctl: static, made by `escrowctl completion zsh`.
@NOTE@
_escrowctl_find() {
  file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache}
@FILE@
  [[ -f $file && -r $file && -O $file ]]
}
_escrowctl_cached() {
  setopt local_options extended_glob
  local file line
  local -a names
  integer n=0
  _escrowctl_find "$1" || return 1
  while (( n++ < 500 )) && IFS= read -r line; do
    (( ${#line} <= 128 )) && [[ $line == [A-Za-z0-9_][A-Za-z0-9_-]# ]] && names+=("$line")
  done <"$file"
  (( $#names )) && compadd -V recent -- $names
}
_escrowctl() {
  setopt local_options extended_glob
  local path_ skip word i only file option=${words[CURRENT - 1]} scope=${ESCROWCTL_PROFILE:-@default}
  local -a commands flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ -n $skip ]]; then
      [[ $skip == profile ]] && scope=$word
      skip=
      continue
    fi
@SCOPE@
      @VALUED@) skip=value ;;
      -*) ;;
      *)
        case "${path_:+$path_ }$word" in
          @PATHS@) path_="${path_:+$path_ }$word" ;;
        esac ;;
    esac
  done
  [[ $scope == @default && -z $ESCROWCTL_BASE_URL ]] && _escrowctl_find default && IFS= read -r scope <"$file"
  [[ $scope == (@|)[A-Za-z0-9_-]## ]] || scope=@default
  if [[ $PREFIX == --*=* ]]; then
    option=${PREFIX%%=*}
    compset -P '*='
  fi
  [[ -n $only ]] && option=
  case $option in
@VALUES@
  esac
  case $path_ in
@COMMANDS@
  esac
  [[ -n $only ]] && return
  _describe command commands
  _describe -o option flags
}
if [[ $funcstack[1] == _escrowctl ]]; then _escrowctl "$@"; else compdef _escrowctl escrowctl; fi
"""
"""Options are a kind of their own to zsh: it offers them once a dash is typed. Loaded by autoload the file's body is
the function; sourced, it registers itself.
"""

_FISH = """\
# fish completion for escrowctl: static, made by `escrowctl completion fish`.
@NOTE@
function __escrowctl_cached --description 'names of a kind from the cache'
    set -l file "$XDG_CACHE_HOME/escrowctl"
    test -n "$XDG_CACHE_HOME"; or set file ~/.cache/escrowctl
    test -d ~/Library/Caches; and set file ~/Library/Caches/escrowctl
    test -n "$ESCROWCTL_HOME"; and set file $ESCROWCTL_HOME/cache
    set file $file/complete/$argv[1]
    test -f $file -a -r $file; or return
    set -l names (string match -r '^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$' <$file)
    test -n "$names[1]"; and printf '%s\\n' $names[1..500]
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
    if test "$scope" = @default -a -z "$ESCROWCTL_BASE_URL"
        set scope (__escrowctl_cached default) @default
    end
    string match -qr '^@?[A-Za-z0-9_-]+$' -- "$scope[1]"; or return
    __escrowctl_cached $scope[1]/$argv[1]
end
function __escrowctl_in_journal --description 'names in the journal of the command line'
    set -l scope @default
    contains -- --sandbox (commandline -opc); and set scope @sandbox
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
            case @VALUED@
                set skip yes
            case '-*'
            case '*'
                set -l longer (string join " " $path $word)
                if contains -- $longer @PATHS@
                    set path $path $word
                end
        end
    end
    test "$path" = "$argv"
end
complete -c escrowctl -f
@COMMANDS@
"""

_SHARED = {
    "NOTE": """\
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.""",
    "FILE": """\
  if [[ -z $file ]]; then
    case $OSTYPE in
      darwin*) file=$HOME/Library/Caches/escrowctl ;;
      *) file=${XDG_CACHE_HOME:-$HOME/.cache}/escrowctl ;;
    esac
  fi
  file+=/complete/$1""",
    "SCOPE": """\
    case $word in
      --) only=1 ;;
      -p | --profile) skip=profile ;;
      --profile=*) scope=${word#*=} ;;
      --sandbox) scope=@sandbox ;;""",
}

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}

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
        **_SHARED,
        "VALUED": separator.join(name for flag in valued for name in flag.names),
        "PATHS": separator.join(_quoted(node.name) for node in nodes if node.path),
        "VALUES": "\n".join(f"    {' | '.join(flag.names)}) {_values(shell, flag.names, nodes)} ;;" for flag in valued),
        "COMMANDS": "\n".join(line for node in nodes for line in command(node)),
    }
    script = _SCRIPTS[shell]
    for name, part in parts.items():
        script = script.replace(f"@{name}@", part)
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
