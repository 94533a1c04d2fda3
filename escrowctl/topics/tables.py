"""The tables of the topics, generated from the data that the program itself uses."""

import textwrap
from collections.abc import Iterable

from escrowctl.errors import ExitCode

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

_COLUMNS = 80
_MOST_NAME_CHARS = 24
"""A longer name has a line to itself."""


def tabulate_exit_codes() -> str:
    """Return the table of exit codes, from `ExitCode`."""
    return tabulate((f"{int(code):>3}", code.meaning) for code in ExitCode)


def tabulate_variables() -> str:
    """Return the table of environment variables."""
    return tabulate(VARIABLES)


def tabulate_options() -> str:
    """Return the table of shared options, from the options that every command parses."""
    from escrowctl.options import make_shared_options  # noqa: PLC0415 - for one topic

    options = make_shared_options()
    names = [", ".join(sorted(one.opts, key=len)) + (f" {one.metavar}" if one.metavar else "") for one in options]
    return tabulate(zip(names, (one.help or "" for one in options), strict=True))


def tabulate_settings() -> str:
    """Return the table of settings, from the model that checks config.toml."""
    from escrowctl.config.profiles import ALL_SETTINGS  # noqa: PLC0415 - it imports pydantic

    return tabulate((name, f"{field.description}{_say_default(field.default)}") for name, field in ALL_SETTINGS.items())


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


def tabulate(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and their meanings in two columns, folded at 80 characters."""
    found = list(rows)
    width = max(len(name) for name, _ in found if len(name) <= _MOST_NAME_CHARS)
    return "".join(_align(name, meaning, width) for name, meaning in found)


def _align(name: str, meaning: str, width: int) -> str:
    indent = " " * (width + 4)
    if len(name) > width:
        return f"  {name}\n{fold(meaning, indent)}"
    return f"  {name:<{width}}  {fold(meaning, indent).lstrip()}"


def fold(text: str, indent: str = "  ") -> str:
    """Return a text as indented lines of at most 80 characters."""
    return textwrap.indent(textwrap.fill(text, _COLUMNS - len(indent), break_on_hyphens=False), indent) + "\n"


TABLES = {
    "options": tabulate_options,
    "settings": tabulate_settings,
    "environment": tabulate_variables,
    "exit-codes": tabulate_exit_codes,
}
"""Topic -> the function that makes its table."""
