"""The topics of `escrowctl help`: texts, and tables made from the data that the program itself uses."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

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
    "sandbox": "Everything without an account and without real money.",
    "contract": "What the service's interface leaves open, and how it is treated.",
}
"""Each topic and its summary, in the order in which they are listed. The text is in NAME.txt, next to this module."""

VARIABLES = (
    ("ESCROWCTL_BASE_URL", "the service's base URL"),
    ("ESCROWCTL_API_KEY", "the API key for that base URL; fewer than 8 characters are an error"),
    ("ESCROWCTL_API_KEY_FILE", "a file with that key, readable by its owner only (0600)"),
    ("ESCROWCTL_PROFILE", "the profile in config.toml to use"),
    ("ESCROWCTL_MODE", "test or live, where no profile sets it"),
    ("ESCROWCTL_STATUS_RELEASED", "statuses that mean released, with commas between them; outranks the profile"),
    ("ESCROWCTL_CONFIG", "another config file"),
    ("ESCROWCTL_CA_BUNDLE", "certificates to trust in place of the system's"),
    ("ESCROWCTL_WEBHOOK_SECRET", "the signing secret of events; several with spaces between them"),
    ("ESCROWCTL_JOURNAL_ID", "the only journal to use, except for a test service (exit 17 with any other)"),
    ("ESCROWCTL_HOME", "one folder for config, state and cache: an absolute path"),
    ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "proxies; loopback addresses are always reached directly"),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR, SSLKEYLOGFILE",
        "ignored; set ESCROWCTL_CA_BUNDLE to replace the system's certificates",
    ),
    ("NO_COLOR, TERM=dumb", "never colour"),
    ("FORCE_COLOR", "always colour, in pipes too"),
    ("CI", "if set, escrowctl asks nothing and uses no keyring"),
)
"""The environment variables that escrowctl reads, and their meaning."""

_TABLE = "@TABLE@\n"
_COLUMNS = 80
_MOST_NAME_CHARS = 24
"""A longer name has a line to itself."""


def list_topics(commands: Iterable[str]) -> str:
    """Return the topics with their summaries, the names of the commands, and the command that prints all of it."""
    return (
        f"Topics, to read with escrowctl help TOPIC:\n\n{_tabulate(TOPICS.items())}\n"
        f"Commands, to read with escrowctl help COMMAND:\n\n{_fold(' '.join(commands))}\n"
        "All of it as a manual page: escrowctl help man | man -l -\n"
    )


def read_topic(name: str) -> str:
    """Return the text of a topic, its table filled in; no line is longer than 80 characters."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    return text.replace(_TABLE, _tabulate(_rows_of(name))) if _TABLE in text else text


def _rows_of(topic: str) -> Iterable[tuple[str, str]]:
    """Return the rows of the table in a topic: names and their meanings."""
    match topic:
        case "options":
            options = make_shared_options()
            names = [
                ", ".join(sorted(one.opts, key=len)) + (f" {one.metavar}" if one.metavar else "") for one in options
            ]
            return zip(names, (one.help or "" for one in options), strict=True)
        case "settings":
            from escrowctl.config.profiles import ALL_SETTINGS  # noqa: PLC0415 - it imports pydantic

            return [(name, f"{field.description}{_say_default(field.default)}") for name, field in ALL_SETTINGS.items()]
        case "environment":
            return VARIABLES
        case _:
            return [(f"{int(code):>3}", code.meaning) for code in ExitCode]


def _say_default(default: object) -> str:
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
    """Return names and their meanings in two columns, folded at 80 characters."""
    found = list(rows)
    width = max(len(name) for name, _ in found if len(name) <= _MOST_NAME_CHARS)
    return "".join(_align(name, meaning, width) for name, meaning in found)


def _align(name: str, meaning: str, width: int) -> str:
    indent = " " * (width + 4)
    if len(name) > width:
        return f"  {name}\n{_fold(meaning, indent)}"
    return f"  {name:<{width}}  {_fold(meaning, indent).lstrip()}"


def _fold(text: str, indent: str = "  ") -> str:
    """Return a text as indented lines of at most 80 characters."""
    return textwrap.indent(textwrap.fill(text, _COLUMNS - len(indent), break_on_hyphens=False), indent) + "\n"
