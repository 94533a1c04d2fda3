"""Send one POST request to an application on this machine, within one deadline: to deliver or forward an event."""

import re
import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

_MAX_HEAD_BYTES = 65_536
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]")
_HEAD_END = b"\r\n\r\n"


class Target(NamedTuple):
    """The target of a POST: an http URL on this machine. `path` includes the query."""

    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host and port, in the form of the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"http://{self.netloc}{self.path}"


def parse_target(url: str) -> Target:
    """Return the target of a URL. Raises ValueError unless it is a plain http URL on this machine."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", 80 if parts.port is None else parts.port
    is_plain = url.isascii() and url.isprintable() and " " not in url and "@" not in parts.netloc and port != 0
    if parts.scheme != "http" or not is_plain or not (host == "localhost" or ip_address(host).is_loopback):
        raise ValueError(url)
    return Target(host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


class Reply(NamedTuple):
    """The result of one attempt: the status of the reply and the duration. Without a valid reply, `error` says why."""

    status: int | None
    seconds: float
    error: str = ""

    @property
    def is_accepted(self) -> bool:
        """Whether the target has accepted the request."""
        return self.status in range(200, 300)


def post_once(
    target: Target, headers: Iterable[tuple[str, str]], body: bytes, *, seconds: float, monotonic: Callable[[], float]
) -> Reply:
    """Send a POST once and return the reply.

    The call takes at most `seconds`. No redirect is followed, and no body of a reply is read.
    """
    start, status, error = monotonic(), None, ""

    def seconds_left() -> float:
        if (remaining := start + seconds - monotonic()) <= 0:
            raise TimeoutError
        return remaining

    own_headers = [("Host", target.netloc), ("Content-Length", str(len(body))), ("Connection", "close")]
    head = "".join(f"{name}: {value}\r\n" for name, value in (*own_headers, *headers))
    try:
        with socket.create_connection((target.host, target.port), timeout=seconds_left()) as connection:
            connection.settimeout(seconds_left())
            # WSGI decodes header values as Latin-1. Encoding restores the bytes that arrived.
            connection.sendall(f"POST {target.path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
            status = _read_status(connection, seconds_left)
    except ConnectionRefusedError:
        error = "no connection"
    except TimeoutError:
        error = f"no answer within {seconds:g} s"
    except (OSError, ValueError):
        error = "no valid answer"
    return Reply(status, monotonic() - start, error)


def _read_status(connection: socket.socket, seconds_left: Callable[[], float]) -> int:
    """Return the status of the final answer, once its headers are complete. Skip the 1xx answers before it.

    Raises OSError, and ValueError if no complete HTTP answer arrives.
    """
    head = b""
    while len(head) <= _MAX_HEAD_BYTES:
        connection.settimeout(seconds_left())
        received = connection.recv(_MAX_HEAD_BYTES)
        head += received
        while _HEAD_END in head and (found := _STATUS_LINE.match(head)):
            if not found[1].startswith(b"1"):
                return int(found[1])
            head = head.partition(_HEAD_END)[2]
        if not received or _HEAD_END in head:
            break
    raise ValueError("no complete answer")
