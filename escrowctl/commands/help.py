"""`escrowctl help`: topics, and the help of any command."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from escrowctl.errors import bad_value
from escrowctl.session import session_of
from escrowctl.topics.tables import fold, tabulate
from escrowctl.topics.topic import TOPICS, read_topic

if TYPE_CHECKING:
    from collections.abc import Sequence


def show(
    context: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]", help="A topic or a command.")] = None,
) -> None:
    """Explain a topic or a command; without a name, list the topics.

    \b
    Examples:
      escrowctl help exit-codes
      escrowctl help tx create
    """
    # Quoted, the words of a command are one.
    words = [word for given in topic or [] for word in given.split()]
    console = session_of(context).console
    if not words:
        console.data(_list_topics(context.find_root().command))
    elif words[0] in TOPICS and len(words) == 1:
        console.data(read_topic(words[0]).rstrip("\n"))
    else:
        console.data(_help_of(context, words))


def _list_topics(tree: Any) -> str:
    return (
        f"Topics, to read with escrowctl help TOPIC:\n\n{tabulate(TOPICS.items())}\n"
        f"Commands, to read with escrowctl help COMMAND:\n\n{fold(' '.join(tree.commands)).rstrip()}"
    )


def _help_of(context: typer.Context, words: "Sequence[str]") -> str:
    found: Any = context.find_root()
    for word in words:
        command = found.command.get_command(found, word) if hasattr(found.command, "get_command") else None
        if command is None:
            raise bad_value(f'there is no command or topic "{" ".join(words)}"; topics: {", ".join(TOPICS)}.')
        found = type(found)(command, info_name=word, parent=found)
    return str(found.get_help())
