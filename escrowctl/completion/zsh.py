"""The script for zsh 5."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
#compdef escrowctl
# zsh completion for escrowctl: static, made by `escrowctl completion zsh`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
_escrowctl_cached() {
  setopt local_options extended_glob
  local file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache} line
  local -a names
  integer n=0
  if [[ -z $file ]]; then
    case $OSTYPE in
      darwin*) file=$HOME/Library/Caches/escrowctl ;;
      *) file=${XDG_CACHE_HOME:-$HOME/.cache}/escrowctl ;;
    esac
  fi
  file+=/complete/$1
  [[ -f $file && -r $file && -O $file ]] || return 1
  while (( n++ < 500 )) && IFS= read -r line; do
    (( ${#line} <= 128 )) && [[ $line == [A-Za-z0-9_][A-Za-z0-9_-]# ]] && names+=("$line")
  done <"$file"
  (( $#names )) && compadd -V recent -- $names
}
_escrowctl() {
  setopt local_options extended_glob
  local path_ skip word i only option=${words[CURRENT - 1]} scope=${ESCROWCTL_PROFILE:-@default}
  local -a commands flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ -n $skip ]]; then
      [[ $skip == profile ]] && scope=$word
      skip=
      continue
    fi
    case $word in
      --) only=1 ;;
      -p | --profile) skip=profile ;;
      --profile=*) scope=${word#*=} ;;
      --sandbox) scope=@sandbox ;;
"""

_MIDDLE = """\
      -*) ;;
      *)
        case "${path_:+$path_ }$word" in
"""

_AFTER = """\
  [[ $scope == (@|)[A-Za-z0-9_-]## ]] || scope=@default
  if [[ $PREFIX == --*=* ]]; then
    option=${PREFIX%%=*}
    compset -P '*='
  fi
  [[ -n $only ]] && option=
"""


def render(nodes: list[Node]) -> str:
    """Return the script: `_describe` shows each candidate with its help."""
    flags = list({flag.names: flag for node in nodes for flag in node.flags}.values())
    valued = [name for flag in flags for name in flag.names if flag.takes_value and flag.cached != "profile"]
    names = " | ".join(_quoted(node.name) for node in nodes if node.path)
    lines = [_HEAD.rstrip("\n"), f"      {' | '.join(valued)}) skip=value ;;", _MIDDLE.rstrip("\n")]
    lines += [f'          {names}) path_="${{path_:+$path_ }}$word" ;;', "        esac ;;", "    esac", "  done"]
    lines += [_AFTER.rstrip("\n"), "  case $option in"]
    lines += [f"    {' | '.join(flag.names)}) {_value_words(flag)} ;;" for flag in flags if flag.takes_value]
    lines += ["  esac", "  case $path_ in"]
    for node in nodes:
        lines += [f"    {_quoted(node.name)})", *_array("commands", _commands(node)), *_array("flags", _flags(node))]
        if node.cached:
            place = node.cached if node.cached == "profile" else f'"$scope/{node.cached}"'
            lines.append(f"      [[ $PREFIX == -* && -z $only ]] || _escrowctl_cached {place}")
        lines += ["      ;;"]
    # zsh has a separate list of options: it offers them once a dash is typed.
    lines += ["  esac", "  [[ -n $only ]] && return", "  _describe command commands"]
    lines += ["  _describe -o option flags", "}"]
    # Loaded by autoload the file's body is the function; sourced, it registers itself.
    lines.append('if [[ $funcstack[1] == _escrowctl ]]; then _escrowctl "$@"; else compdef _escrowctl escrowctl; fi')
    return "\n".join(lines) + "\n"


def _value_words(flag: Flag) -> str:
    if flag.is_file:
        return "_files; return"
    if flag.cached:
        return f"_escrowctl_cached {flag.cached}; return"
    return f"compadd -- {' '.join(flag.choices)}; return" if flag.choices else "return"


def _array(name: str, items: list[str]) -> list[str]:
    return [f"      {name}=(", *(f"        {_quoted(item)}" for item in items), "      )"]


def _commands(node: Node) -> list[str]:
    return [f"{name}:{_escaped(summary)}" for name, summary in node.words]


def _flags(node: Node) -> list[str]:
    return [f"{name}:{_escaped(flag.summary)}" for flag in node.flags for name in flag.names]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
