"""The script for zsh 5."""

from escrowctl.completion.tree import Flag, Node

_HEAD = """\
#compdef escrowctl
# zsh completion for escrowctl: static, made by `escrowctl completion zsh`.
_escrowctl() {
  local path_ skip word i
  local -a commands flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ -n $skip ]]; then
      skip=
      continue
    fi
    case $word in
"""

_MIDDLE = """\
      -*) ;;
      *)
        case "${path_:+$path_ }$word" in
"""


def render(nodes: list[Node]) -> str:
    """Return the script: `_describe` shows each candidate with its help."""
    flags = list({flag.names: flag for node in nodes for flag in node.flags}.values())
    valued = [name for flag in flags for name in flag.names if flag.takes_value]
    names = "|".join(_quoted(node.name) for node in nodes if node.path)
    lines = [_HEAD.rstrip("\n"), f"      {'|'.join(valued)}) skip=1 ;;", _MIDDLE.rstrip("\n")]
    lines += [f'          {names}) path_="${{path_:+$path_ }}$word" ;;', "        esac ;;", "    esac", "  done"]
    lines.append("  case ${words[CURRENT - 1]} in")
    lines += [f"    {'|'.join(flag.names)}) {_value_words(flag)} ;;" for flag in flags if flag.takes_value]
    lines += ["  esac", "  case $path_ in"]
    for node in nodes:
        lines += [f"    {_quoted(node.name)})", *_array("commands", _commands(node)), *_array("flags", _flags(node))]
        lines += ["      ;;"]
    # Options are a kind of their own to zsh: it offers them once a dash is typed.
    lines += ["  esac", "  _describe command commands", "  _describe -o option flags", "}"]
    # Loaded by autoload the file's body is the function; sourced, it registers itself.
    lines.append('if [[ $funcstack[1] == _escrowctl ]]; then _escrowctl "$@"; else compdef _escrowctl escrowctl; fi')
    return "\n".join(lines) + "\n"


def _value_words(flag: Flag) -> str:
    if flag.is_file:
        return "_files; return"
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
