"""The one module that speaks HTTP: a transport of our own over httpcore's pool.

httpx's own transport takes no network backend; ours needs one, for two things that decide about
money: the first byte written to the origin itself is noted before it is handed to the kernel
(after any proxy's tunnel, inside TLS), and one deadline bounds an attempt in total, name
resolution and every read included. Redirects are not followed, cookies are not kept, the
environment is not read.
"""

import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# httpx imports its own command line where click is installed (+40 ms); None stops that import.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # None is what stops an import
import httpcore
import httpx

from escrowctl.client.decoding import BodyError, collect
from escrowctl.client.dns import LONGEST_WAIT, resolve_name, share_of
from escrowctl.client.http import Answer, Evidence, Exchange, Fault, Request
from escrowctl.client.tls import make_context, make_empty_context
from escrowctl.config.service import Service
from escrowctl.contract.json import Defect
from escrowctl.contract.key_search import star
from escrowctl.contract.operations import READING_METHODS

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

IDLE_SECONDS = 1.0
"""An idle connection older than this is not used again: servers drop them while a write is leaving."""

_WRITE_CHUNK = 16 * 1024

_HEAD_END = b"\r\n\r\n"
_MAX_HEAD = 64 * 1024

Observer = Callable[[Request, Exchange, float], None]
"""Called with each exchange, and the seconds it took."""


class _Attempt:
    """What the streams of one attempt share: its evidence, and the moment it must be over."""

    def __init__(self, evidence: Evidence, seconds: float, monotonic: Callable[[], float]) -> None:
        self.evidence = evidence
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self, expired: type[Exception]) -> float:
        """Return the seconds left; raises `expired` when there are none."""
        seconds = self._end - self._monotonic()
        if seconds <= 0:
            raise expired("the attempt's deadline passed")
        return seconds


class _Serving:
    """What a connection serves now: connections outlive attempts. Counts what the attempt has received."""

    attempt: _Attempt

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Forget what the last attempt received."""
        self._head = b""
        self._received = 0

    def count(self, chunk: bytes) -> None:
        """Count bytes that arrived; the first are kept, to find where the reply's head ends."""
        if len(self._head) < _MAX_HEAD:
            self._head += chunk
        self._received += len(chunk)

    def ends_with(self, response: httpcore.Response) -> bool:
        """Whether nothing was received after a reply: its Content-Length says where it ends (RFC 9112 section 6.3).

        A reply without one may end anywhere.
        """
        lengths = [value for name, value in response.headers if name.lower() == b"content-length"]
        head = self._head.find(_HEAD_END)
        if len(lengths) != 1 or not lengths[0].isdigit() or head < 0:
            return False
        return self._received == head + len(_HEAD_END) + int(lengths[0][:18])


class _WatchedStream(httpcore.NetworkStream):
    """A stream that notes the first byte to the origin and never outlives the attempt.

    `layers` counts the TLS handshakes still to come before the stream's bytes are the origin's:
    none on plain http, one on https, and the tunnel's request to a proxy lies before the last.
    """

    def __init__(self, stream: httpcore.NetworkStream, serving: _Serving, layers: int) -> None:
        self._stream = stream
        self._serving = serving
        self._layers = layers

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - ours is total
        while True:
            left = self._serving.attempt.left(httpcore.ReadTimeout)
            try:
                chunk = self._stream.read(max_bytes, min(left, LONGEST_WAIT))
            except httpcore.ReadTimeout:
                continue
            self._serving.count(chunk)
            return chunk

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - ours is total
        for start in range(0, len(buffer), _WRITE_CHUNK):
            left = self._serving.attempt.left(httpcore.WriteTimeout)
            if self._layers == 0:
                self._serving.attempt.evidence.sent = True
            self._stream.write(buffer[start : start + _WRITE_CHUNK], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - ours is total
    ) -> httpcore.NetworkStream:
        left = self._serving.attempt.left(httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _WatchedStream(stream, self._serving, self._layers - 1)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _NameError(httpcore.ConnectError):
    """The host's name could not be resolved."""


class _WatchedBackend(httpcore.NetworkBackend):
    """Connects to the first address that answers, within the attempt's deadline, and returns watched streams."""

    def __init__(self, serving: _Serving, layers: int) -> None:
        self._serving = serving
        self._layers = layers
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - ours is total
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _resolve(host, port, self._serving.attempt.left(httpcore.ConnectTimeout))
        failure: Exception = _NameError(f"{host} has no address")
        for others, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            seconds = share_of(self._serving.attempt.left(httpcore.ConnectTimeout), others=others)
            try:
                stream = self._sockets.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return _WatchedStream(stream, self._serving, self._layers)
        raise failure


def _resolve(host: str, port: int, seconds: float) -> list[str]:
    try:
        return resolve_name(host, port, seconds=seconds)
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except OSError as error:
        raise _NameError(str(error.strerror or error)) from error


class OriginTransport(httpx.BaseTransport):
    """httpx's transport seam over httpcore's pool, for one origin and one thread.

    Raises httpcore's exceptions as they are: `Connection` turns them into faults by evidence.
    """

    def __init__(
        self, *, is_https: bool, context: ssl.SSLContext, proxy: str | None, monotonic: Callable[[], float]
    ) -> None:
        self._serving = _Serving()
        self._monotonic = monotonic
        self._is_reusable = True
        self._served_write = False
        proxy_layers = 1 if proxy and proxy.startswith("https") else 0
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            proxy=_proxy(proxy, context),
            max_connections=1,
            keepalive_expiry=IDLE_SECONDS,
            retries=0,
            network_backend=_WatchedBackend(self._serving, layers=proxy_layers + int(is_https)),
        )

    def prepare(self, evidence: Evidence, seconds: float, *, is_write: bool) -> None:
        """Set what the next request serves, and how many seconds it may take in total.

        What a service sends after a reply would be taken for the answer to the next request: a connection
        is used again only where nothing came after the last reply, and never for a write after a read or
        for a read after a write. What is still in the socket, httpcore notices.
        """
        if not self._is_reusable or is_write != self._served_write:
            self._pool.close()
        self._is_reusable = False
        self._served_write = is_write
        self._serving.start()
        self._serving.attempt = _Attempt(evidence, seconds, self._monotonic)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response, the body still to be streamed."""
        left = self._serving.attempt.left(httpcore.PoolTimeout)
        outgoing = httpcore.Request(
            method=request.method,
            url=str(request.url),
            headers=request.headers.raw,
            content=request.content,
            extensions={"timeout": {"pool": left, "connect": left, "read": left, "write": left}},
        )
        try:
            response = self._pool.handle_request(outgoing)
        except BaseException:
            # A connection that failed on its way through a tunnel would keep the pool's only place.
            self._pool.close()
            raise
        assert isinstance(response.stream, Iterable)
        stream = _BodyStream(response, self._end)
        return httpx.Response(response.status, headers=response.headers, stream=stream, extensions=response.extensions)

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()

    def _end(self, response: httpcore.Response) -> None:
        self._is_reusable = self._serving.ends_with(response)


class _BodyStream(httpx.SyncByteStream):
    """A reply's body; `end` is called once it was read to its end."""

    def __init__(self, response: httpcore.Response, end: Callable[[httpcore.Response], None]) -> None:
        self._response = response
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()
        self._end(self._response)

    def close(self) -> None:
        self._response.close()


def _proxy(url: str | None, context: ssl.SSLContext) -> httpcore.Proxy | None:
    if url is None:
        return None
    parsed = httpx.URL(url)
    auth = (parsed.username, parsed.password) if parsed.username else None
    bare = parsed.copy_with(username=None, password=None)
    return httpcore.Proxy(str(bare), auth=auth, ssl_context=context if parsed.scheme == "https" else None)


class InProcessTransport(httpx.BaseTransport):
    """The sandbox behind the same seam: a WSGI call in this process, with the same evidence."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._wsgi = httpx.WSGITransport(app=app)
        self._evidence = Evidence()

    def prepare(self, evidence: Evidence, seconds: float, *, is_write: bool) -> None:  # noqa: ARG002 - a call cannot be cut off
        """Set what the next request serves."""
        self._evidence = evidence

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Call the application; from here on the request counts as sent."""
        self._evidence.sent = True
        return self._wsgi.handle_request(request)


class Connection:
    """One request at a time to one service: `exchange` returns what happened and raises nothing of HTTP."""

    def __init__(
        self,
        transport: OriginTransport | InProcessTransport,
        observe: Observer | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._observe = observe
        self._monotonic = monotonic

    def exchange(self, request: Request, *, evidence: Evidence, seconds: float, limit: int) -> Exchange:
        """Send one request, at most `seconds` in total, and read at most `limit` bytes of its reply.

        `evidence` is filled as the bytes leave, so that it holds even where a signal ends this call.
        """
        start = self._monotonic()
        self._transport.prepare(evidence, seconds, is_write=request.method not in READING_METHODS)
        key = _key_of(request)
        outgoing = httpx.Request(request.method, request.url, headers=request.headers, content=request.body)
        try:
            with _closing(self._transport.handle_request(outgoing)) as response:
                answer = _read_answer(response, limit)
            exchange = Exchange(evidence.sent, answer=answer.without(key))
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError) as error:
            fault = _fault_of(error, sent=evidence.sent)
            exchange = Exchange(evidence.sent, fault=fault, detail=star(_detail_of(error), key))
        if self._observe is not None:
            self._observe(request, exchange, self._monotonic() - start)
        return exchange

    def close(self) -> None:
        """Close the connection, if any."""
        self._transport.close()


def _key_of(request: Request) -> str:
    """Return the API key that the request carries."""
    return next(value for name, value in request.headers if name == "Authorization").removeprefix("Bearer ")


@contextmanager
def _closing(response: httpx.Response) -> Iterator[httpx.Response]:
    try:
        yield response
    finally:
        response.close()


def _read_answer(response: httpx.Response, limit: int) -> Answer:
    """Read the body within bounds; of a body that breaks off, the status still counts."""
    assert isinstance(response.stream, httpx.SyncByteStream)
    headers = tuple(response.headers.multi_items())
    kept = _Kept(response.stream)
    try:
        body = collect(kept, limit=limit, encoding=response.headers.get("content-encoding"))
    except BodyError as broken:
        return Answer(response.status_code, headers, broken.kept, broken.defect)
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
        return Answer(response.status_code, headers, bytes(kept.head), Defect.CUT_SHORT)
    return Answer(response.status_code, headers, body)


class _Kept:
    """Passes chunks on and saves the first for an excerpt, should the body break off."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.head = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if len(self.head) < _WRITE_CHUNK:
                self.head += chunk
            yield chunk


def _fault_of(error: Exception, *, sent: bool) -> Fault:
    """Name the fault; whether the request had left is evidence's to say, never the exception's."""
    match error:
        case _NameError():
            return Fault.NO_NAME
        case httpcore.ProxyError():
            return Fault.PROXY
        case httpcore.LocalProtocolError():
            return Fault.BAD_REQUEST
        case httpcore.TimeoutException():
            return Fault.TIMEOUT if sent else Fault.CONNECT_TIMEOUT
        case httpcore.ConnectError():
            return Fault.TLS if _is_tls(error) else Fault.NO_CONNECTION
        case httpcore.ProtocolError():
            return Fault.BAD_PROTOCOL if _has_bytes(error) else Fault.BROKEN_OFF
        case _:
            return Fault.BROKEN_OFF if sent else Fault.NO_CONNECTION


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _has_bytes(error: Exception) -> bool:
    # h11 words an early end this way; anything else it complains of are bytes that are not HTTP.
    return "without sending a response" not in str(error) and "closed connection" not in str(error)


def _detail_of(error: Exception) -> str:
    """Return what the error says beyond its kind; never a byte of what the service sent.

    h11 quotes the line that it cannot read, and a service may have put the key there.
    """
    if isinstance(error, httpcore.ProtocolError) and _has_bytes(error):
        return ""
    return str(error).strip().rstrip(".")


def connect(
    service: Service, *, monotonic: Callable[[], float] = time.monotonic, observe: Observer | None = None
) -> Connection:
    """Return a connection to a real service, through its proxy if it has one; it is made with the first request."""
    is_https = service.origin.scheme == "https"
    context = make_context(service.network.ca_bundle) if is_https else make_empty_context()
    transport = OriginTransport(is_https=is_https, context=context, proxy=service.network.proxy, monotonic=monotonic)
    return Connection(transport, observe, monotonic=monotonic)


def connect_in_process(app: "WSGIApplication", *, observe: Observer | None = None) -> Connection:
    """Return a connection to a WSGI application in this process."""
    return Connection(InProcessTransport(app), observe)
