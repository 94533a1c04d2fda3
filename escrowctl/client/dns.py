"""A host's addresses within a deadline: getaddrinfo(3) itself takes no time-out, and an address may never answer."""

import socket
import threading
import time
from collections.abc import Callable

LONGEST_WAIT = 0.2
"""Seconds. A signal that comes just before a wait is noticed only when the wait ends: none is long."""

_ADDRESS_SECONDS = 3.0
"""Seconds for one address while there are others: two SYNs, the second after one second (RFC 6298 section 2)."""


def share_of(seconds: float, *, others: int) -> float:
    """Return how many of the `seconds` left a connection to one address may take, with `others` still to try."""
    return min(seconds / (others + 1), _ADDRESS_SECONDS) if others else seconds


def resolve_name(host: str, port: int, *, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> list[str]:
    """Return a host's addresses, each once, in the system's order.

    Raises OSError where it has none, and TimeoutError where the answer takes longer than `seconds`.
    """
    found: list[str] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            found.extend(str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    end = monotonic() + seconds
    while thread.is_alive() and monotonic() < end:
        thread.join(min(LONGEST_WAIT, seconds))
    if thread.is_alive():
        raise TimeoutError(f"{host} was not resolved in time")
    if failed:
        raise failed[0]
    return list(dict.fromkeys(found))
