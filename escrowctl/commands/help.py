"""`escrowctl help`: show a topic, or the help of any command."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from escrowctl.errors import bad_value
from escrowctl.session import session_of


def show(
    context: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]", help="A topic or a command.")] = None,
) -> None:
    """Explain a topic or a command. Without TOPIC, list all topics and commands.

    \b
    Examples:
      escrowctl help exit-codes
      escrowctl help tx create
    """
    from escrowctl.completion.tree import read_tree  # noqa: PLC0415 - help of a command does not need it
    from escrowctl.man_page import render_man_page  # noqa: PLC0415
    from escrowctl.topics.topic import TOPICS, list_topics, read_topic  # noqa: PLC0415

    # The words of a command may be quoted as one argument.
    words = [word for argument in topic or [] for word in argument.split()]
    tree: Any = context.find_root().command
    if not words:
        text: str | None = list_topics(tree.commands)
    elif words == ["man"]:
        text = render_man_page(read_tree(tree))
    elif words[0] in TOPICS and len(words) == 1:
        text = read_topic(words[0])
    else:
        text = _find_help(context, words)
    if text is None:
        typed, topics = " ".join(words), ", ".join(TOPICS)
        raise bad_value(f'there is no command or topic "{typed}"; topics: {topics}.')
    session_of(context).console.write_page(text.rstrip("\n"))


def _find_help(context: typer.Context, words: Sequence[str]) -> str | None:
    """Return the help of the command with these words, such as `tx create`; None if there is no such command."""
    current: Any = context.find_root()
    for word in words:
        command = current.command.get_command(current, word) if hasattr(current.command, "get_command") else None
        if command is None:
            return None
        current = type(current)(command, info_name=word, parent=current)
    return str(current.get_help())
