"""The topics by name, and the text of each."""

from collections.abc import Iterable
from pathlib import Path

from escrowctl.topics.tables import TABLES, fold, tabulate

TOPICS = {
    "options": "The options that every command understands.",
    "settings": "The settings of a profile in config.toml.",
    "environment": "The environment variables, and what outranks them.",
    "output": "Tables, tab-separated text, JSON: what is printed where.",
    "exit-codes": "What each exit code means.",
    "batch": "Files of rows: columns, checks, stopping and resuming.",
    "journal": "The record of every write; unknown outcomes, backups.",
    "money-safety": "How paying twice is prevented, and what to do when unsure.",
    "webhooks": "Events: receiving, checking and forwarding them.",
    "sandbox": "Everything without an account and without real money.",
    "contract": "What the service's interface leaves open, and how it is treated.",
}
"""Each topic and its summary, in the order in which they are listed. The text is in NAME.txt, next to this module."""

_TABLE = "@TABLE@\n"


def list_topics(commands: Iterable[str]) -> str:
    """Return the topics with their summaries, the names of the commands, and the command that prints all of it."""
    return (
        f"Topics, to read with escrowctl help TOPIC:\n\n{tabulate(TOPICS.items())}\n"
        f"Commands, to read with escrowctl help COMMAND:\n\n{fold(' '.join(commands))}\n"
        "All of it as a manual page: escrowctl help man | man -l -\n"
    )


def read_topic(name: str) -> str:
    """Return the text of a topic, its table filled in; no line is longer than 80 characters."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    return text.replace(_TABLE, TABLES[name]()) if _TABLE in text else text
