"""The topics by name, and the text of each."""

from pathlib import Path

from escrowctl.topics.tables import TABLES

TOPICS = {
    "options": "The options that every command understands.",
    "settings": "The settings of a profile in config.toml.",
    "environment": "The environment variables, and what outranks them.",
    "exit-codes": "What each exit code means.",
}
"""Each topic and its summary, in the order in which they are listed. The text is in NAME.txt, next to this module."""

_TABLE = "@TABLE@\n"


def read_topic(name: str) -> str:
    """Return the text of a topic, its table filled in; no line is longer than 80 characters."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    return text.replace(_TABLE, TABLES[name]()) if _TABLE in text else text
