"""One POST to the address of an endpoint: on this machine only, unless an address range is allowed.

Whoever can register an endpoint chooses where this process connects to (SSRF). So every address of the
name is checked, and one of the checked addresses is dialled: there is no second look-up that could
bring another one (DNS rebinding). No redirect is followed, no proxy is used, and little of a reply is read.
"""

import contextlib
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host's name, as texts; raises OSError where it has none."""

LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))

_DRAINED_BYTES = 64 * 1024
_DRAIN_SECONDS = 1.0
_IPV6 = 6
_PORTS = {"http": 80, "https": 443}


class Reply(NamedTuple):
    """The status and one header of a reply; its body is not used."""

    status: int
    retry_after: str | None


class DialError(Exception):
    """There is no reply; the message says why, and `timed_out` whether it was only too slow."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class Dialler:
    """Sends to loopback and to the `allowed` ranges; another thread may `cut` what is being sent."""

    def __init__(self, allowed: Sequence[Network] = (), *, resolve: Resolve | None = None) -> None:
        self._allowed = (*LOOPBACK, *allowed)
        self._resolve = resolve or _look_up
        self._open: socket.socket | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, seconds: float) -> Reply:
        """Send a POST, and return the head of its reply; all of it takes at most `seconds`. Raises DialError."""
        try:
            with self._connected(urlsplit(url), _Deadline(seconds)) as (connection, deadline):
                connection.settimeout(deadline.left())
                connection.sendall(_write_request(urlsplit(url), headers, body))
                return _read_reply(connection, deadline)
        except TimeoutError as error:
            raise DialError(f"no reply within {seconds:.3g} s", timed_out=True) from error
        except ssl.SSLError as error:
            raise DialError(f"the TLS handshake failed ({error.reason or error})") from error
        except ConnectionRefusedError as error:
            raise DialError("connection refused") from error
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            raise DialError("the connection broke before a reply came") from error
        except http.client.HTTPException as error:
            raise DialError("the reply is not HTTP") from error
        except OSError as error:
            raise DialError(error.strerror or "no connection") from error

    def cut(self) -> None:
        """Break the connection that is open, if any; `post` raises DialError then."""
        if (connection := self._open) is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _connected(self, parts: SplitResult, deadline: "_Deadline") -> "Iterator[tuple[socket.socket, _Deadline]]":
        assert parts.hostname is not None, "no endpoint is stored without a host"
        port = parts.port or _PORTS[parts.scheme]
        addresses = self._check(parts.hostname, self._find(parts.hostname, port, deadline))
        connection = self._open = _dial(addresses, port, deadline)
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context()
                connection = self._open = context.wrap_socket(connection, server_hostname=parts.hostname)
            yield connection, deadline
        finally:
            self._open = None
            connection.close()

    def _find(self, host: str, port: int, deadline: "_Deadline") -> Sequence[str]:
        """Look a name up in a thread: the system may take longer than there is time."""
        found: list[Sequence[str]] = []

        def look_up() -> None:
            with contextlib.suppress(OSError, UnicodeError):
                found.append(self._resolve(host, port))

        thread = threading.Thread(target=look_up, daemon=True)
        thread.start()
        thread.join(deadline.left())
        if thread.is_alive():
            raise DialError(f"{host} was not resolved in time", timed_out=True)
        if not found or not found[0]:
            raise DialError(f"{host} has no address")
        return found[0]

    def _check(self, host: str, found: Sequence[str]) -> Sequence[Address]:
        """Return all addresses of a host; raises DialError if one of them is not allowed."""
        addresses = [_read_address(text) for text in found]
        for address in addresses:
            if not any(address in network for network in self._allowed):
                named = host if host == str(address) else f"{host} is {address}, which"
                raise DialError(f"{named} is not on this machine: allow it with sandbox serve --allow-cidr")
        return addresses


class _Deadline:
    """The moment at which one attempt must be over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; raises TimeoutError when there are none."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def shorten(self, seconds: float) -> None:
        """Leave at most so many seconds."""
        self._end = min(self._end, time.monotonic() + seconds)


class _TimedStream(io.RawIOBase):
    """What a connection receives, each read within what is left of the attempt.

    http.client asks a socket for `makefile`; a time-out of the socket would start again with each byte.
    """

    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left())
        return self._connection.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)


def _look_up(host: str, port: int) -> Sequence[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def _read_address(text: str) -> Address:
    """Read an address; an IPv4 address that is mapped into IPv6 (RFC 4291 section 2.5.5.2) counts as what it is."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def _dial(addresses: Sequence[Address], port: int, deadline: _Deadline) -> socket.socket:
    """Connect to the first address that takes it; raises OSError."""
    failure: OSError | None = None
    for address in addresses:
        connection = socket.socket(socket.AF_INET6 if address.version == _IPV6 else socket.AF_INET)
        try:
            connection.settimeout(deadline.left())
            connection.connect((str(address), port))
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    assert failure is not None, "there was an address"
    raise failure


def _write_request(parts: SplitResult, headers: Mapping[str, str], body: bytes) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    every = {"Host": parts.netloc, "Content-Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in every.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _read_reply(connection: socket.socket, deadline: _Deadline) -> Reply:
    stream = _TimedStream(connection, deadline)
    response = http.client.HTTPResponse(stream)  # type: ignore[arg-type] # it uses nothing but `makefile`
    response.begin()
    # A receiver that is still writing must not see its connection reset: that would look like an error to it.
    deadline.shorten(_DRAIN_SECONDS)
    with contextlib.suppress(OSError, http.client.HTTPException):
        response.read(_DRAINED_BYTES)
    return Reply(response.status, response.getheader("Retry-After"))
