"""Connections to one origin that record the first byte sent and keep a deadline.

Two rules protect money. `Evidence.sent` is set before the kernel gets the first byte for the origin; bytes for a
proxy or a TLS handshake do not count. One deadline limits a complete attempt, from name resolution to the last
read. httpx makes requests and responses, h11 writes and reads HTTP, and httpcore's streams carry bytes and TLS.
httpcore's own connections cost 0.1 ms more a request, and keep bytes after a reply for the next one.
"""

import contextlib
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import h11
import httpcore
import httpx

from escrowctl.client.http import SUCCESS_STATUSES, Peer, Tls
from escrowctl.contract.operations import READING_METHODS
from escrowctl.errors import bad_config

IDLE_SECONDS = 1.0
"""A connection that was idle for longer is not used again: the server may close it while a request is leaving."""

_MAX_WAIT_SECONDS = 0.2
"""Seconds. A signal just before a wait is noticed only when the wait ends: so waits are short."""

_MAX_ADDRESS_SECONDS = 3.0
"""The most seconds for an address if more are left: time for two SYNs, one second apart (RFC 6298 section 2)."""

_READ_BYTES, _MAX_HEAD_BYTES = 64 * 1024, 100 * 1024
_WRITE_CHUNK_BYTES = 16 * 1024


class Transport(httpx.BaseTransport):
    """Carries requests to a service. A request has two extensions: `evidence`, set here, and `seconds`, its limit.

    `peer` is the address of the last connection. `is_shared`: the last request used a connection that had carried
    an earlier request.
    """

    peer: Peer | None = None
    is_shared = False


class OriginTransport(Transport):
    """Sends one thread's requests to one origin. Reads share a connection. `context` None: http, without a proxy."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext | None,
        proxy: httpcore.Proxy | None,
        monotonic: Callable[[], float],
        on_wait: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._context, self._proxy = context, proxy
        self._monotonic, self._on_wait = monotonic, on_wait
        self._connector = _Connector(is_plain=context is None)
        self._wire: _Wire | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response, with the body still unread. Raises errors of httpcore and h11.

        An extra reply on a shared connection would be taken for the reply to the next request. So each write gets a
        new connection, and first closes the connection that reads share.
        """
        start = self._monotonic()
        attempt = _Attempt(start, start + request.extensions["seconds"], self._monotonic, self._on_wait)
        is_read, wire = request.method in READING_METHODS, self._wire
        try:
            self.is_shared = is_read and wire is not None and wire.is_reusable(start)
            if wire is None or not self.is_shared:
                self.close()
                self._wire = wire = _Wire(self._connect(request.url, attempt), attempt)
            # Of TLS inside TLS, bytes that were read and decrypted early are not seen.
            wire.attempt, wire.is_kept = attempt, is_read and not (self._proxy and self._proxy.ssl_context)
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            reply = wire.exchange(head, request.content, request.extensions["evidence"].mark_sent)
        except BaseException:
            self.close()
            raise
        return httpx.Response(reply.status_code, headers=reply.headers.raw_items(), stream=wire)

    def close(self) -> None:
        """Close the connection."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.stream.close()

    def _connect(self, url: httpx.URL, attempt: "_Attempt") -> httpcore.NetworkStream:
        """Return a connection to a URL's origin; through the proxy, if there is one."""
        host, port = url.raw_host, url.port or (80 if self._context is None else 443)
        proxy, context = self._proxy, self._context
        near = (host.decode(), port) if proxy is None else (proxy.url.host.decode(), proxy.url.origin.port)
        self.peer = None
        stream, self.peer = self._connector.connect(*near, attempt)
        try:
            if proxy is not None:
                if proxy.ssl_context is not None:
                    stream = stream.start_tls(proxy.ssl_context, near[0], attempt.left(httpcore.ConnectTimeout))
                target = b"[%b]:%d" if b":" in host else b"%b:%d"
                _open_tunnel(_Wire(stream, attempt), target % (host, port), proxy.headers)
            if context is not None:
                stream = stream.start_tls(context, host.decode(), attempt.left(httpcore.ConnectTimeout))
                self.peer = self.peer._replace(tls=_describe_tls(stream.get_extra_info("ssl_object")))
        except BaseException:
            stream.close()
            raise
        return stream


class _Wire(httpx.SyncByteStream):
    """HTTP/1.1 on one connection. As a stream of httpx, it is the body of the current reply.

    `attempt` limits the current request; `is_kept`: the connection may be used again after its reply.
    """

    def __init__(self, stream: httpcore.NetworkStream, attempt: "_Attempt") -> None:
        self.stream, self.attempt, self.is_kept = stream, attempt, False
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._idle_since: float | None = None

    def is_reusable(self, now: float) -> bool:
        """Whether the next request may be sent. Bytes that can be read before it would be taken for its reply."""
        is_recent = self._idle_since is not None and now - self._idle_since <= IDLE_SECONDS
        return is_recent and not self.stream.get_extra_info("is_readable")

    def exchange(self, head: h11.Request, body: bytes, note: Callable[[], None] = lambda: None) -> h11.Response:
        """Send a request, and return the head of its reply. `note` is called before the kernel gets each piece."""
        http, self._idle_since = self._http, None
        data = http.send(head) + http.send(h11.Data(body)) + http.send(h11.EndOfMessage())
        # If a write fails, the service may have replied before it closed.
        with contextlib.suppress(httpcore.WriteError):
            for start in range(0, len(data), _WRITE_CHUNK_BYTES):
                left = self.attempt.left(httpcore.WriteTimeout)
                note()
                self.stream.write(data[start : start + _WRITE_CHUNK_BYTES], left)
        while not isinstance(event := self._receive(), h11.Response):
            assert isinstance(event, h11.InformationalResponse), event
        return event

    def __iter__(self) -> Iterator[bytes]:
        while isinstance(event := self._receive(), h11.Data):
            yield bytes(event.data)

    def close(self) -> None:
        """End the reply: keep the connection if it may be used again, else close it."""
        http = self._http
        if self.is_kept and http.our_state is h11.DONE is http.their_state and not any(http.trailing_data):
            http.start_next_cycle()
            self._idle_since = self.attempt.monotonic()
        else:
            self.stream.close()

    def _receive(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = self._read()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise httpcore.ReadError("Server disconnected without sending a response")
            self._http.receive_data(data)
        return event

    def _read(self) -> bytes:
        while True:
            left = self.attempt.left(httpcore.ReadTimeout)
            try:
                return self.stream.read(_READ_BYTES, min(left, _MAX_WAIT_SECONDS))
            except httpcore.ReadTimeout:
                self.attempt.report_wait()


def _open_tunnel(wire: _Wire, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Ask a proxy for a tunnel (RFC 9110 section 9.3.6). Raises httpcore's ProxyError if it refuses."""
    head = h11.Request(method="CONNECT", target=target, headers=[(b"Host", target), *headers])
    reply = wire.exchange(head, b"")
    if reply.status_code not in SUCCESS_STATUSES:
        raise httpcore.ProxyError(f"{reply.status_code} {reply.reason.decode('ascii', errors='ignore')}")


class _Attempt(NamedTuple):
    """The deadline of one attempt."""

    start: float
    end: float
    monotonic: Callable[[], float]
    on_wait: Callable[[float], None]

    def left(self, error_type: type[Exception]) -> float:
        """Return the seconds until the deadline. Raises `error_type` if the deadline has passed."""
        if (seconds := self.end - self.monotonic()) <= 0:
            raise error_type("the deadline passed")
        return seconds

    def report_wait(self) -> None:
        """Call `on_wait` with the seconds since the attempt began. Ignores errors of `on_wait`."""
        with contextlib.suppress(Exception):
            self.on_wait(self.monotonic() - self.start)


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

    httpcore's own stream makes three system calls for each of these, and each lets another thread run first.
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


class _Connector:
    """Connects to the first address of a host that answers, within the deadline of an attempt."""

    def __init__(self, *, is_plain: bool) -> None:
        self._open = _PlainStream if is_plain and sys.platform == "linux" else httpcore.SyncBackend().connect_tcp
        self._addresses: list[str] = []
        self._looked_up = 0.0

    def connect(self, host: str, port: int, attempt: _Attempt) -> tuple[httpcore.NetworkStream, Peer]:
        """Return a connection to a host, and its address. Raises httpcore's ConnectError or ConnectTimeout."""
        addresses = self._find_addresses(host, port, attempt)
        failure: Exception = NoAddressError(f"{host} has no address")
        for others, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            left = attempt.left(httpcore.ConnectTimeout)
            seconds = min(left / (others + 1), _MAX_ADDRESS_SECONDS) if others else left
            try:
                stream = self._open(address, port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            self._addresses = [address, *(other for other in addresses if other != address)]
            return stream, Peer(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
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
    context.set_alpn_protocols(["http/1.1"])
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
