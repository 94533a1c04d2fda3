"""The script for bash 4 and newer."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
# bash completion for escrowctl: static, made by `escrowctl completion bash`.
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} path= skip= words= word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $skip ]]; then
      skip=
      continue
    fi
    case $word in
"""

_MIDDLE = """\
      -*) ;;
      *)
        case "${path:+$path }$word" in
"""


def render(nodes: list[Node]) -> str:
    """Return the script. Every word in it is the program's own: nothing of it is ever expanded."""
    flags = _unique(nodes)
    valued = [name for flag in flags for name in flag.names if flag.takes_value]
    lines = [_HEAD.rstrip("\n"), f"      {'|'.join(valued)}) skip=1 ;;", _MIDDLE.rstrip("\n")]
    lines.append(
        f'          {"|".join(_quoted(node.name) for node in nodes if node.path)}) path="${{path:+$path }}$word" ;;'
    )
    lines += ["        esac ;;", "    esac", "  done", "  case ${COMP_WORDS[COMP_CWORD - 1]} in"]
    lines += [f"    {'|'.join(flag.names)}) {_value_words(flag)} ;;" for flag in flags if flag.takes_value]
    lines += ["    *)", "      case $path in"]
    lines += [f"        {_quoted(node.name)}) words={_quoted(_candidates(node))} ;;" for node in nodes]
    lines += ["      esac ;;", "  esac", '  COMPREPLY=($(compgen -W "$words" -- "$cur"))', "}"]
    lines.append("complete -F _escrowctl escrowctl")
    return "\n".join(lines) + "\n"


def _value_words(flag: Flag) -> str:
    if flag.is_file:
        return 'COMPREPLY=($(compgen -f -- "$cur")); return'
    return f"words={_quoted(' '.join(flag.choices))}" if flag.choices else "return"


def _candidates(node: Node) -> str:
    return " ".join([name for name, _ in node.words] + [name for flag in node.flags for name in flag.names])


def _unique(nodes: list[Node]) -> list[Flag]:
    return list({flag.names: flag for node in nodes for flag in node.flags}.values())


def _quoted(text: str) -> str:
    return f"'{text}'"
