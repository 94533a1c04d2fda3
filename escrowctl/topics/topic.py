"""The topics of `escrowctl help`: texts, and tables made from the data that the program itself uses."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

from escrowctl.contract.operations import OPERATIONS
from escrowctl.errors import ExitCode
from escrowctl.options import make_shared_options

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
    "sandbox": "Try everything without an account and without real money.",
    "contract": "What the service's interface leaves open; how it is handled.",
}
"""Each topic and its summary, in listed order. The text of a topic is in NAME.txt, next to this module."""

VARIABLES = (
    ("ESCROWCTL_BASE_URL", "the service's base URL"),
    ("ESCROWCTL_API_KEY", "the API key for that base URL; fewer than 8 characters are an error"),
    ("ESCROWCTL_API_KEY_FILE", "a file with the API key, readable by its owner only (0600)"),
    ("ESCROWCTL_PROFILE", "the profile in config.toml to use"),
    ("ESCROWCTL_MODE", "test or live, if no profile sets it"),
    ("ESCROWCTL_STATUS_RELEASED", "statuses that mean released, separated by commas; outranks the profile"),
    ("ESCROWCTL_CONFIG", "the config file to use in place of the default"),
    ("ESCROWCTL_CA_BUNDLE", "certificates to trust in place of the system's"),
    ("ESCROWCTL_WEBHOOK_SECRET", "the signing secret of events, or several separated by spaces"),
    ("ESCROWCTL_JOURNAL_ID", "the id of the only journal to use; ignored for a test service"),
    ("ESCROWCTL_JOURNAL", "the PostgreSQL URL of a journal that several machines share"),
    ("ESCROWCTL_HOME", "one folder for config, state and cache: an absolute path"),
    ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "proxies; loopback addresses are always reached directly"),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR, SSLKEYLOGFILE",
        "ignored; set ESCROWCTL_CA_BUNDLE to replace the system's certificates",
    ),
    ("NO_COLOR, TERM=dumb", "no colour"),
    ("FORCE_COLOR", "colour always, in pipes too"),
    ("CI", "if set, escrowctl asks nothing and uses no keyring"),
)
"""The environment variables that escrowctl reads, and their meaning."""

_TABLE_MARK = "@TABLE@\n"
_LINE_CHARS = 80
_MAX_NAME_CHARS = 24
"""If a name is longer, its meaning starts on the next line."""


def list_topics(commands: Iterable[str]) -> str:
    """Return the topics with their summaries, the names of the commands, and the command that prints the manual."""
    return (
        f"Topics, to read with escrowctl help TOPIC:\n\n{_tabulate(TOPICS.items())}\n"
        f"Commands, to read with escrowctl help COMMAND:\n\n{_fold_lines(' '.join(commands))}\n"
        "Everything as a manual page: escrowctl help man | man -l -\n"
    )


def read_topic(name: str) -> str:
    """Return the text of the topic `name` with its table filled in. No line is longer than 80 characters."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    return text.replace(_TABLE_MARK, _tabulate(_list_table_rows(name))) if _TABLE_MARK in text else text


def _list_table_rows(topic: str) -> Iterable[tuple[str, str]]:
    """Return the rows of the table in this topic: each is a name and the meaning of the name."""
    match topic:
        case "options":
            options = make_shared_options()
            names = [
                ", ".join(sorted(one.opts, key=len)) + (f" {one.metavar}" if one.metavar else "") for one in options
            ]
            return zip(names, (one.help or "" for one in options), strict=True)
        case "settings":
            from escrowctl.config.profiles import ALL_SETTINGS  # noqa: PLC0415 - it imports pydantic

            return [(name, f"{field.description}{_add_default(field.default)}") for name, field in ALL_SETTINGS.items()]
        case "environment":
            return VARIABLES
        case "sandbox":
            return [("OPERATION     ", " ".join(operation.word for operation in OPERATIONS))]
        case _:
            return [(f"{int(code):>3}", code.meaning) for code in ExitCode]


def _add_default(default: object) -> str:
    match default:
        case bool():
            return f"; default {str(default).lower()}"
        case str():
            return f'; default "{default}"'
        case [_, *_]:
            return f"; default {', '.join(map(str, default))}"
        case _:
            return ""


def _tabulate(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of a name and its meaning as two columns, folded at 80 characters."""
    found = list(rows)
    width = max(len(name) for name, _ in found if len(name) <= _MAX_NAME_CHARS)
    indent = " " * (width + 4)
    return "".join(
        f"  {name}\n{_fold_lines(meaning, indent)}"
        if len(name) > width
        else f"  {name:<{width}}  {_fold_lines(meaning, indent).lstrip()}"
        for name, meaning in found
    )


def _fold_lines(text: str, indent: str = "  ") -> str:
    """Return a text as indented lines of at most 80 characters."""
    return textwrap.indent(textwrap.fill(text, _LINE_CHARS - len(indent), break_on_hyphens=False), indent) + "\n"
