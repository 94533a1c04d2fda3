"""escrowctl(1) in the language of man(7), made from the command tree and the topics."""

import re
import textwrap
from collections.abc import Iterator
from itertools import takewhile

from escrowctl import __version__
from escrowctl.completion.tree import Flag, Node
from escrowctl.topics.topic import TOPICS, read_topic

_COLUMNS, _INDENT = 80, 9
_AFTER_SUMMARY = "Every command also takes the options that OPTIONS below describes."
_GLYPHS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}
"""Characters that troff would print as another one, or not at all."""
_HEADING = re.compile(r"[A-Z][A-Z ,]+")


def render(nodes: list[Node]) -> str:
    """Return the page. `nodes` is the tree, its root first. Every command has the options of the root."""
    root, *others = nodes
    lines = [
        f'.TH ESCROWCTL 1 "" "escrowctl {__version__}" "User Commands"',
        *(
            ".ad l",
            ".nh",
            ".SH NAME",
            f"escrowctl \\- {_escape(root.summary[0].lower() + root.summary[1:].rstrip('.'))}",
        ),
        *(".SH SYNOPSIS", f"\\fBescrowctl\\fR {_escape('[OPTIONS] COMMAND [ARGS]...')}"),
        *(".SH DESCRIPTION", *_flow(f"{root.text}\n\n{_AFTER_SUMMARY}")),
        ".SH COMMANDS",
        *(line for node in others if not node.is_group for line in _command(node, shared=root.flags)),
    ]
    for topic in TOPICS:
        lines += [f".SH {topic.upper()}", *_flow(read_topic(topic))]
    return "".join(f"{line}\n" for line in lines)


def _command(node: Node, *, shared: tuple[Flag, ...]) -> Iterator[str]:
    yield f'.SS "{_escape(node.usage)}"'
    yield from _flow(node.text)
    names = {flag.names for flag in shared}
    own = [flag for flag in node.flags if flag.names not in names]
    options = [(f"{', '.join(sorted(flag.names, key=len))} {flag.metavar}", flag.summary) for flag in own]
    for name, text in [*node.arguments, *options]:
        yield from (".TP", f"\\fB{_escape(name.strip())}\\fR", _escape(text))


def _flow(text: str) -> Iterator[str]:
    """Yield a text as lines of the page: headings, terms, paragraphs, and indented lines as they are."""
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
            yield from _keep(indented)


def _keep(lines: list[str]) -> Iterator[str]:
    """Yield lines that troff must not fill, indented as far as 80 columns allow."""
    if lines:
        kept = textwrap.dedent("\n".join(lines)).split("\n")
        indent = min(_INDENT, _COLUMNS - max(map(len, kept)))
        yield from (".br", f".in {indent}n", ".nf", *map(_escape, kept), ".fi", ".in")


def _escape(text: str) -> str:
    """Return the text escaped so that troff prints it unchanged: `-` stays the character that shells read."""
    escaped = "".join(_GLYPHS.get(character, character) for character in text)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
