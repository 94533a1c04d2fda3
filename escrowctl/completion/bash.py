"""The script for bash 4 and newer."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
# bash completion for escrowctl: static, made by `escrowctl completion bash`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
_escrowctl_offer() {
  local word
  for word in $1; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$start$word")
  done
}
_escrowctl_cached() {
  local file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache} line lines
  if [[ -z $file ]]; then
    case $OSTYPE in
      darwin*) file=$HOME/Library/Caches/escrowctl ;;
      *) file=${XDG_CACHE_HOME:-$HOME/.cache}/escrowctl ;;
    esac
  fi
  file+=/complete/$1
  [[ -f $file && -r $file && -O $file ]] || return
  mapfile -t -n 500 lines <"$file"
  for line in "${lines[@]}"; do
    [[ $line == "$cur"* && $line == [!-]* && $line != *[!A-Za-z0-9_-]* ]] || continue
    ((${#line} <= 128)) && COMPREPLY+=("$start$line")
  done
}
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} start= path= skip= only= word i
  local scope=${ESCROWCTL_PROFILE:-@default} LC_ALL=C IFS=$' \\t\\n'
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
    case $word in
      --) only=1 ;;
      -p | --profile) skip=profile ;;
      --profile=*) scope=${word#*=} ;;
      --sandbox) scope=@sandbox ;;
"""

_MIDDLE = """\
      -*) ;;
      *)
        case "${path:+$path }$word" in
"""

_AFTER = """\
  [[ $scope =~ ^@?[A-Za-z0-9_-]+$ ]] || scope=@default
  if [[ $cur == = ]]; then
    cur=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $cur == --*=* ]]; then
    option=${cur%%=*} start=${cur%%=*}= cur=${cur#*=}
  fi
  [[ $only ]] && option=
"""


def render(nodes: list[Node]) -> str:
    """Return the script. All words in it are the program's: none is ever expanded."""
    flags = _unique(nodes)
    valued = [name for flag in flags for name in flag.names if flag.takes_value and flag.cached != "profile"]
    lines = [_HEAD.rstrip("\n"), f"      {' | '.join(valued)}) skip=value ;;", _MIDDLE.rstrip("\n")]
    lines.append(
        f'          {" | ".join(_quoted(node.name) for node in nodes if node.path)}) path="${{path:+$path }}$word" ;;'
    )
    lines += ["        esac", "        ;;", "    esac", "  done", _AFTER.rstrip("\n"), "  case $option in"]
    lines += [f"    {' | '.join(flag.names)}) {_value_words(flag)} ;;" for flag in flags if flag.takes_value]
    lines += ["    *)", "      case $path in"]
    lines += [line for node in nodes for line in _node_lines(node)]
    lines += ["      esac", "      ;;", "  esac", "}"]
    lines.append("complete -F _escrowctl escrowctl")
    return "\n".join(lines) + "\n"


def _value_words(flag: Flag) -> str:
    if flag.is_file:
        # Readline completes file names itself.
        return "compopt -o default 2>/dev/null"
    if flag.cached:
        return f"_escrowctl_cached {flag.cached}"
    return f"_escrowctl_offer {_quoted(' '.join(flag.choices))}" if flag.choices else ""


def _node_lines(node: Node) -> list[str]:
    offer = f"          [[ $only ]] || _escrowctl_offer {_quoted(_candidates(node))}"
    lines = [f"        {_quoted(node.name)})", offer]
    if node.cached:
        place = node.cached if node.cached == "profile" else f'"$scope/{node.cached}"'
        lines.append(f"          [[ $cur == -* && -z $only ]] || _escrowctl_cached {place}")
    return [*lines, "          ;;"]


def _candidates(node: Node) -> str:
    return " ".join([name for name, _ in node.words] + [name for flag in node.flags for name in flag.names])


def _unique(nodes: list[Node]) -> list[Flag]:
    return list({flag.names: flag for node in nodes for flag in node.flags}.values())


def _quoted(text: str) -> str:
    return f"'{text}'"
