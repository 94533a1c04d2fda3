"""The manual page escrowctl(1), in man(7) source, made from the command tree and the help topics."""

import re
import textwrap
from collections.abc import Iterator
from itertools import takewhile

from escrowctl import __version__
from escrowctl.completion.tree import Flag, Node
from escrowctl.topics.topic import TOPICS, read_topic

_COLUMNS, _INDENT = 80, 9
_SHARED_OPTIONS_NOTE = "Every command also takes the options in the section OPTIONS below."
_TROFF_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}
"""Maps each character that troff would change or drop to its escape."""
_HEADING = re.compile(r"[A-Z][A-Z ,]+")


def render_man_page(nodes: list[Node]) -> str:
    """Return the manual page. `nodes` is the command tree, root first. Every command has the root's options."""
    root, *others = nodes
    lines = [
        f'.TH ESCROWCTL 1 "" "escrowctl {__version__}" "User Commands"',
        *(".ad l", ".nh"),
        *(".SH NAME", f"escrowctl \\- {_escape(root.summary[0].lower() + root.summary[1:].rstrip('.'))}"),
        *(".SH SYNOPSIS", f"\\fBescrowctl\\fR {_escape('[OPTIONS] COMMAND [ARGS]...')}"),
        *(".SH DESCRIPTION", *_format_text(f"{root.text}\n\n{_SHARED_OPTIONS_NOTE}")),
        ".SH COMMANDS",
        *(line for node in others if not node.is_group for line in _format_command(node, shared=root.flags)),
    ]
    for topic in TOPICS:
        lines += [f".SH {topic.upper()}", *_format_text(read_topic(topic))]
    return "".join(f"{line}\n" for line in lines)


def _format_command(node: Node, *, shared: tuple[Flag, ...]) -> Iterator[str]:
    yield f'.SS "{_escape(node.usage)}"'
    yield from _format_text(node.text)
    names = {flag.names for flag in shared}
    own = [flag for flag in node.flags if flag.names not in names]
    options = [(f"{', '.join(sorted(flag.names, key=len))} {flag.metavar}", flag.summary) for flag in own]
    for name, text in [*node.arguments, *options]:
        yield from (".TP", f"\\fB{_escape(name.strip())}\\fR", _escape(text))


def _format_text(text: str) -> Iterator[str]:
    """Yield a text as lines of man(7) source: headings, terms, paragraphs, and unchanged indented lines."""
    for block in text.replace("\b\n", "").strip("\n").split("\n\n"):
        lines = block.split("\n")
        plain = [*takewhile(lambda line: not line.startswith("  "), lines)]
        indented = lines[len(plain) :]
        if _HEADING.fullmatch(block):
            yield f'.SS "{block}"'
        elif len(plain) == 1 and indented and all(line.startswith("    ") for line in indented):
            yield from (".TP", *(_escape(line.strip()) for line in lines))
        else:
            yield from (".PP", *map(_escape, plain))
            if indented:
                # troff must not join these lines. A line that is too long reduces the indent of all.
                kept = textwrap.dedent("\n".join(indented)).split("\n")
                indent = min(_INDENT, _COLUMNS - max(map(len, kept)))
                yield from (".br", f".in {indent}n", ".nf", *map(_escape, kept), ".fi", ".in")


def _escape(text: str) -> str:
    """Return the text with escapes, so that troff prints each character unchanged."""
    escaped = "".join(_TROFF_ESCAPES.get(character, character) for character in text)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
