"""Connections to one origin that record the first byte sent and keep a deadline.

Two rules protect money. `Evidence.sent` is set before the kernel gets the first byte for the origin; bytes for a
proxy or a TLS handshake do not count. One deadline limits a complete attempt, from name resolution to the last
read. Both rules need a network backend. httpx's transport accepts none, but httpcore's pool does: so this module
connects httpx's requests and responses to httpcore.
"""

import contextlib
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpcore
import httpx

from escrowctl.client.http import Evidence, Peer, Tls
from escrowctl.contract.operations import READING_METHODS
from escrowctl.errors import bad_config

IDLE_SECONDS = 1.0
"""A connection that was idle for longer is not used again: the server may close it while a request is leaving."""

_MAX_WAIT_SECONDS = 0.2
"""Seconds. A signal just before a wait is noticed only when the wait ends: so waits are short."""

_MAX_ADDRESS_SECONDS = 3.0
"""The most seconds for an address if more are left: time for two SYNs, one second apart (RFC 6298 section 2)."""

_WRITE_CHUNK_BYTES = 16 * 1024


class Transport(httpx.BaseTransport):
    """Carries requests to a service. A request has two extensions: `evidence`, set here, and `seconds`, its limit.

    `peer` is the address of the last connection. `is_shared`: the last request used a connection that had carried
    an earlier request.
    """

    peer: Peer | None = None
    is_shared = False


class OriginTransport(Transport):
    """Sends one thread's requests to one origin, over httpcore's connections. Reads share a connection."""

    attempt: "_Attempt"

    def __init__(
        self,
        *,
        is_https: bool,
        context: ssl.SSLContext | None,
        proxy: httpcore.Proxy | None,
        monotonic: Callable[[], float],
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._on_wait = on_wait
        backend = _WatchedBackend(self, int(is_https) + (1 if proxy and proxy.url.scheme == b"https" else 0))
        self._shared = httpcore.ConnectionPool(
            ssl_context=context,
            proxy=proxy,
            max_connections=1,
            keepalive_expiry=IDLE_SECONDS,
            retries=0,
            network_backend=backend,
        )
        self._own: httpcore.ConnectionInterface | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response, with the body still unread. Raises httpcore's errors.

        An extra reply on a shared connection would be taken for the reply to the next request. So each write gets a
        new connection, and first closes the connection that reads share.
        """
        self.is_shared = True
        evidence, seconds = request.extensions["evidence"], request.extensions["seconds"]
        start = self._monotonic()
        self.attempt = _Attempt(evidence, start, start + seconds, self._monotonic, self._on_wait)
        url = request.url
        outgoing = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.content,
            extensions={"timeout": {"pool": seconds}},
        )
        connection: httpcore.ConnectionPool | httpcore.ConnectionInterface = self._shared
        if request.method not in READING_METHODS:
            self.close()
            connection = self._own = self._shared.create_connection(outgoing.url.origin)
        try:
            response = connection.handle_request(outgoing)
        except BaseException:
            # A connection that failed in a proxy's tunnel would occupy the pool's only slot.
            self.close()
            raise
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        """Close the connection that reads share, and that of the last write."""
        self._shared.close()
        if self._own is not None:
            self._own.close()


class _Body(httpx.SyncByteStream):
    """The body of a reply, read from the network in chunks."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _Attempt(NamedTuple):
    """The state that the streams of one attempt share: its evidence and its deadline."""

    evidence: Evidence
    start: float
    end: float
    monotonic: Callable[[], float]
    on_wait: Callable[[float], None] | None

    def left(self, error_type: type[Exception]) -> float:
        """Return the seconds until the deadline. Raises `error_type` if the deadline has passed."""
        seconds = self.end - self.monotonic()
        if seconds <= 0:
            raise error_type("the deadline passed")
        return seconds

    def report_wait(self) -> None:
        """Call `on_wait` with the seconds since the attempt began. Ignores errors of `on_wait`."""
        with contextlib.suppress(Exception):
            if self.on_wait is not None:
                self.on_wait(self.monotonic() - self.start)


class _WatchedStream(httpcore.NetworkStream):
    """A stream that records the first byte for the origin and keeps the attempt's deadline.

    `handshakes` is the number of TLS handshakes that must come before bytes on the stream are for the origin: 0 for
    http, 1 for https, 1 more through an https proxy. The tunnel request to a proxy comes before the last handshake.
    """

    def __init__(self, stream: httpcore.NetworkStream, transport: OriginTransport, handshakes: int) -> None:
        self._stream = stream
        self._transport = transport
        self._handshakes = handshakes
        self._unsent = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - ours is total
        self._send_buffered()
        while True:
            left = self._transport.attempt.left(httpcore.ReadTimeout)
            try:
                return self._stream.read(max_bytes, min(left, _MAX_WAIT_SECONDS))
            except httpcore.ReadTimeout:
                self._transport.attempt.report_wait()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - ours is total
        # It is sent when the reply is read, so that a head and a small body leave in one segment.
        self._unsent += buffer

    def _send_buffered(self) -> None:
        unsent, self._unsent = self._unsent, b""
        # httpcore ignores a failed write too: the service may have replied before it closed.
        with contextlib.suppress(httpcore.WriteError):
            for start in range(0, len(unsent), _WRITE_CHUNK_BYTES):
                left = self._transport.attempt.left(httpcore.WriteTimeout)
                if self._handshakes == 0:
                    self._transport.attempt.evidence.mark_sent()
                self._stream.write(unsent[start : start + _WRITE_CHUNK_BYTES], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_others: object, **_options: object
    ) -> httpcore.NetworkStream:
        left = self._transport.attempt.left(httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        if self._handshakes == 1 and self._transport.peer is not None:
            self._transport.peer = self._transport.peer._replace(tls=_describe_tls(stream.get_extra_info("ssl_object")))
        return _WatchedStream(stream, self._transport, self._handshakes - 1)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _describe_tls(ssl_object: Any) -> Tls | None:
    """Return the TLS version and the certificate of an SSL object; None if it has no certificate."""
    certificate = ssl_object.getpeercert() if ssl_object is not None else None
    if not certificate:
        return None
    names = dict(pair for part in certificate["issuer"] for pair in part)
    issuer = names.get("organizationName") or names.get("commonName") or ""
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    return Tls(ssl_object.version(), issuer, ends)


class _PlainStream(httpcore.NetworkStream):
    """A connection without TLS to an address. The kernel limits the time of each call (socket(7), SO_RCVTIMEO).

    httpcore's own stream sets a limit and polls before each call. Each of these system calls lets another thread run
    first: with many threads, that is most of what they do.
    """

    def __init__(self, address: str, port: int, seconds: float) -> None:
        try:
            self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        try:
            with self._limited(socket.SO_SNDTIMEO, seconds, httpcore.ConnectTimeout, httpcore.ConnectError):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.connect((address, port))
        except BaseException:
            self.close()
            raise

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._limited(socket.SO_RCVTIMEO, timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with self._limited(socket.SO_SNDTIMEO, timeout, httpcore.WriteTimeout, httpcore.WriteError):
            self._socket.sendall(buffer)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        (poll := select.poll()).register(self._socket, select.POLLIN)
        return bool(poll.poll(0)) if info == "is_readable" else None

    @contextlib.contextmanager
    def _limited(self, option: int, seconds: float | None, *errors: type[Exception]) -> Iterator[None]:
        too_long, failed = errors
        microseconds = max(1, int((seconds or 0.0) * 1_000_000))  # 0 would be no limit
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", *divmod(microseconds, 1_000_000)))
            yield
        except (BlockingIOError, TimeoutError) as error:
            raise too_long("timed out") from error
        except OSError as error:
            raise failed(str(error)) from error


class NoAddressError(httpcore.ConnectError):
    """The host's name could not be resolved."""


class _WatchedBackend(httpcore.NetworkBackend):
    """Connects to the first address that answers, within the attempt's deadline, and returns watched streams."""

    def __init__(self, transport: OriginTransport, handshakes: int) -> None:
        self._transport = transport
        self._handshakes = handshakes
        is_plain = handshakes == 0 and sys.platform == "linux"
        self._connect = _PlainStream if is_plain else httpcore.SyncBackend().connect_tcp
        self._addresses: list[str] = []
        self._looked_up = 0.0

    def connect_tcp(self, host: str, port: int, *_others: object, **_options: object) -> httpcore.NetworkStream:
        self._transport.peer, self._transport.is_shared = None, False
        attempt = self._transport.attempt
        addresses = self._find_addresses(host, port, attempt)
        failure: Exception = NoAddressError(f"{host} has no address")
        for others, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            left = attempt.left(httpcore.ConnectTimeout)
            seconds = min(left / (others + 1), _MAX_ADDRESS_SECONDS) if others else left
            try:
                stream = self._connect(address, port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            self._addresses = [address, *(other for other in addresses if other != address)]
            self._transport.peer = Peer(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
            return _WatchedStream(stream, self._transport, self._handshakes)
        self._addresses = []
        raise failure

    def _find_addresses(self, host: str, port: int, attempt: _Attempt) -> list[str]:
        # A batch connects for each row: the addresses are used for a second, first the address that answered.
        if not self._addresses or attempt.start - self._looked_up > IDLE_SECONDS:
            left = attempt.left(httpcore.ConnectTimeout)
            try:
                self._addresses = resolve_name(host, port, seconds=left, report_wait=attempt.report_wait)
            except TimeoutError as error:
                raise httpcore.ConnectTimeout(str(error)) from error
            except OSError as error:
                raise NoAddressError(str(error.strerror or error)) from error
            self._looked_up = attempt.start
        return self._addresses


def resolve_name(
    host: str,
    port: int,
    *,
    seconds: float,
    monotonic: Callable[[], float] = time.monotonic,
    report_wait: Callable[[], None] = lambda: None,
) -> list[str]:
    """Return a host's addresses, each once, in the system's order. `report_wait` is called five times a second.

    Raises OSError if the host has no address, and TimeoutError if the resolution takes longer than `seconds`.
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
        thread.join(min(_MAX_WAIT_SECONDS, seconds))
        if thread.is_alive():
            report_wait()
    if thread.is_alive():
        raise TimeoutError(f"{host} was not resolved in time")
    if failed:
        raise failed[0]
    return list(dict.fromkeys(found))


def make_tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Return a TLS context that verifies servers. Raises EscrowctlError `BAD_CONFIG` for unreadable certificates.

    `ca_bundle` replaces the system's trust store. SSL_CERT_FILE and SSL_CERT_DIR are ignored: they would silently
    change which servers get the key. SSLKEYLOGFILE is ignored: it would write TLS session keys into a file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca_bundle:
            context.load_verify_locations(cafile=ca_bundle)
        else:
            # The certificates that OpenSSL was built to trust: its file, and its folder, which is read when needed.
            built_in = ssl.get_default_verify_paths()
            if Path(built_in.openssl_cafile).is_file():
                context.load_verify_locations(cafile=built_in.openssl_cafile)
            if Path(built_in.openssl_capath).is_dir():
                context.load_verify_locations(capath=built_in.openssl_capath)
    except (ssl.SSLError, OSError) as error:
        trust_store = f"ESCROWCTL_CA_BUNDLE: {ca_bundle}" if ca_bundle else "the system's trust store"
        raise bad_config(f"{trust_store} holds no usable certificates: {error}.") from error
    return context
