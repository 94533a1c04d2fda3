"""The embedded sandbox as a service: sealed, no variable and no file says where it is."""

from escrowctl.config.origin import Origin, parse_base_url
from escrowctl.config.secrets import Secret
from escrowctl.config.service import READ_TIMEOUT, WRITE_TIMEOUT, Service
from escrowctl.config.settings import LineValues, check_timeout
from escrowctl.errors import bad_value

IN_PROCESS_HOST = "sandbox.localhost"
"""Where requests to the in-process sandbox are addressed; nothing is ever resolved or connected."""


def check_line(line: LineValues) -> None:
    """Raise EscrowctlError (exit 2) where the line names another service beside --sandbox."""
    for name, value in (("--profile", line.profile), ("--base-url", line.base_url)):
        if value is not None:
            raise bad_value(f"--sandbox and {name} cannot both be meant: --sandbox goes nowhere else.")
    if line.timeout is not None:
        check_timeout(line.timeout)


def describe_sandbox(line: LineValues, *, identity: str, key: str, served_at: str | None) -> Service:
    """Return the service; `served_at` is the URL of the `sandbox serve` that holds the store, if one does."""
    origin = parse_base_url(served_at, source="server.json") if served_at else Origin("http", IN_PROCESS_HOST, 80)
    return Service(
        name="sandbox",
        origin=origin,
        identity=identity,
        key=Secret(key),
        url_source="--sandbox",
        key_source="the sandbox's own store",
        live=False,
        sandbox=True,
        retry_throttled=True,
        released=frozenset({"released"}),
        read_timeout=line.timeout or READ_TIMEOUT,
        write_timeout=line.timeout or WRITE_TIMEOUT,
    )
