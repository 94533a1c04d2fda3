"""`escrowctl help`: topics, and the help of any command."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from escrowctl.errors import ExitCode, bad_value
from escrowctl.session import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence


VARIABLES = (
    ("ESCROWCTL_BASE_URL", "the service's base URL"),
    ("ESCROWCTL_API_KEY", "the API key for that base URL; fewer than 8 characters are an error"),
    ("ESCROWCTL_API_KEY_FILE", "a file with that key, readable by its owner only (0600)"),
    ("ESCROWCTL_PROFILE", "the profile in config.toml to use"),
    ("ESCROWCTL_MODE", "test or live, where no profile sets it"),
    ("ESCROWCTL_CONFIG", "another config file"),
    ("ESCROWCTL_CA_BUNDLE", "certificates to trust in place of the system's"),
    ("ESCROWCTL_JOURNAL_ID", "the only journal that live writes may use; with any other they fail (exit 17)"),
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


def exit_codes() -> str:
    """Return the table of exit codes, made from the enum that the program exits with."""
    return "\n".join(f"{int(code):>4}  {code.meaning}" for code in ExitCode)


def environment() -> str:
    """Return the table of environment variables."""
    width = max(len(name) for name, _ in VARIABLES)
    return "\n".join(f"{name:<{width}}  {meaning}" for name, meaning in VARIABLES)


TOPICS = {"exit-codes": exit_codes, "environment": environment}


def show(
    context: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]", help="A topic or a command.")] = None,
) -> None:
    """Explain a topic (exit-codes, environment) or a command.

    \b
    Examples:
      escrowctl help exit-codes
      escrowctl help tx create
    """
    # Quoted, the words of a command are one.
    words = [word for given in topic or [] for word in given.split()]
    console = session_of(context).console
    if len(words) == 1 and words[0] in TOPICS:
        console.data(TOPICS[words[0]]())
        return
    console.data(_help_of(context, words))
    if not words:
        console.data(f"\nTopics: {', '.join(TOPICS)}. Read one: escrowctl help TOPIC")


def _help_of(context: typer.Context, words: "Sequence[str]") -> str:
    found: Any = context.find_root()
    for word in words:
        command = found.command.get_command(found, word) if hasattr(found.command, "get_command") else None
        if command is None:
            raise bad_value(f'there is no command or topic "{" ".join(words)}"; topics: {", ".join(TOPICS)}.')
        found = type(found)(command, info_name=word, parent=found)
    return str(found.get_help())
