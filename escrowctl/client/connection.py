"""The one module that speaks HTTP: one request at a time, its reply read within bounds, its faults named.

Redirects are not followed, cookies are not stored, the environment is not read.
"""

import re
import ssl
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Protocol

# httpx imports its own command line where click is installed (+40 ms); None stops that import.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # None is what stops an import
import httpcore
import httpx

from escrowctl.client.http import Answer, Evidence, Exchange, Fault, Headers, Peer, Request
from escrowctl.client.transport import NoAddressError, OriginTransport, make_context, make_empty_context
from escrowctl.config.service import Service
from escrowctl.contract.json import Defect
from escrowctl.contract.operations import READING_METHODS
from escrowctl.contract.redaction import star

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_KEPT = 16 * 1024
"""Bytes. A body may be as large as the list limit; what is shown of a broken one is its first line."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_CLOSED_EARLY = "Server disconnected without sending a response."
"""What httpcore says of a connection that was closed."""

_PLACE_IN_OPENSSL = re.compile(r" \(_ssl\.c:[0-9]+\)")

Observer = Callable[[Request, Exchange, float], None]
"""Called with each exchange, and the seconds it took."""

DrawWait = Callable[[str, float], None]
"""Called during a wait, with what is waited for, and the seconds so far."""


class _Pool(Protocol):
    """Sends one request and returns its response, the body still to be read; raises httpcore's errors."""

    def handle_request(self, request: httpcore.Request) -> httpcore.Response: ...


class Transport(Protocol):
    """What a connection sends its requests over."""

    @property
    def peer(self) -> Peer | None:
        """The connection that is open, or how far the last one was opened."""

    @property
    def is_shared(self) -> bool:
        """Whether the last request went over a connection that had carried another."""

    def prepare(self, evidence: Evidence, seconds: float, *, is_write: bool) -> _Pool:
        """Return what sends the next request, sets `evidence` and takes at most `seconds`."""

    def close(self) -> None:
        """Close what is open."""


class Connection:
    """One request at a time to one service: `exchange` returns what happened and raises nothing of HTTP."""

    def __init__(
        self,
        transport: Transport,
        observe: Observer | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        proxy: str | None = None,
    ) -> None:
        self._transport = transport
        self._observe = observe
        self._monotonic = monotonic
        self._proxy = proxy
        """The URL of the proxy, as it may be shown."""
        self.last: Exchange | None = None
        """What came of the last request; None before the first."""

    def exchange(self, request: Request, *, evidence: Evidence, seconds: float, limit: int) -> Exchange:
        """Send one request, at most `seconds` in total, and read at most `limit` bytes of its reply.

        `evidence` is filled as the bytes leave, so that it holds even where a signal ends this call.
        """
        start = self._monotonic()
        pool = self._transport.prepare(evidence, seconds, is_write=request.method not in READING_METHODS)
        key = _key_of(request)
        url, host = _target(request.url)
        outgoing = httpcore.Request(
            request.method,
            url,
            headers=[(b"Host", host), *_encode_headers(request)],
            content=request.body or b"",
            extensions={"timeout": {"pool": seconds}},
        )
        try:
            try:
                response = pool.handle_request(outgoing)
            except BaseException:
                # A connection that failed on its way through a tunnel would keep the pool's only place.
                self._transport.close()
                raise
            answer = self._read_answer(response, limit)
            exchange = Exchange(
                evidence.sent,
                answer=answer.without(key),
                peer=self._transport.peer,
                proxy=self._proxy,
                is_shared=self._transport.is_shared,
            )
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError) as error:
            fault, detail = self._describe(error, sent=evidence.sent)
            peer = self._transport.peer
            exchange = Exchange(evidence.sent, fault=fault, detail=star(detail, key), peer=peer, proxy=self._proxy)
        self.last = exchange
        if self._observe is not None:
            self._observe(request, exchange, self._monotonic() - start)
        return exchange

    def close(self) -> None:
        """Close the connection, if any."""
        self._transport.close()

    def _describe(self, error: Exception, *, sent: bool) -> tuple[Fault, str]:
        """Return the fault and what is known of it; behind a proxy, a connection that fails is one to the proxy."""
        fault, detail = _fault_of(error, sent=sent), _detail_of(error)
        if self._proxy is None or fault not in (Fault.NO_NAME, Fault.NO_CONNECTION, Fault.PROXY):
            return fault, detail
        return Fault.PROXY, ": ".join(filter(None, (self._proxy, detail)))

    def _read_answer(self, response: httpcore.Response, limit: int) -> Answer:
        """Read the body within bounds; of a body that breaks off, the status still counts."""
        headers = _decode_headers(response.headers)
        encoding = ", ".join(value for name, value in headers if name == "content-encoding")
        head = bytearray()

        def chunks() -> Iterator[bytes]:
            for chunk in response.iter_stream():
                if len(head) < _KEPT:
                    head.extend(chunk)
                yield chunk

        body, defect = b"", None
        try:
            body = collect(chunks(), limit=limit, encoding=encoding)
        except BodyError as broken:
            body, defect = broken.kept, broken.defect
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
            body, defect = bytes(head), Defect.CUT_SHORT
        finally:
            response.close()
        return Answer(response.status, headers, body, defect)


class InProcessTransport:
    """The sandbox behind the same seam: a WSGI call in this process, with the same evidence.

    An application that raises ConnectionError has closed or reset the connection, before its reply or within;
    one that yields empty chunks is not ready yet (PEP 3333), and the attempt ends at its deadline.
    """

    peer: Peer | None = None
    is_shared = False

    def __init__(self, app: "WSGIApplication", monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._monotonic = monotonic
        self._wsgi = httpx.WSGITransport(app=self._call)
        self._evidence = Evidence()
        self._end = 0.0

    def prepare(self, evidence: Evidence, seconds: float, *, is_write: bool) -> "InProcessTransport":  # noqa: ARG002 - there is no connection to choose
        """Return itself for the next request, which serves `evidence` and may take `seconds`."""
        self._evidence = evidence
        self._end = self._monotonic() + seconds
        return self

    def handle_request(self, request: httpcore.Request) -> httpcore.Response:
        """Call the application; from here on the request counts as sent."""
        assert isinstance(request.stream, Iterable)
        url, content = bytes(request.url).decode(), b"".join(request.stream)
        self._evidence.sent = True
        found = self._wsgi.handle_request(
            httpx.Request(request.method.decode(), url, headers=request.headers, content=content)
        )
        assert isinstance(found.stream, Iterable)
        return httpcore.Response(found.status_code, headers=found.headers.raw, content=found.stream)

    def _call(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        """Call the application, and raise what httpcore raises where a socket ends in the same way."""
        try:
            for chunk in self._app(environ, start_response):
                yield chunk
                if not chunk and self._monotonic() >= self._end:
                    raise httpcore.ReadTimeout("the deadline passed")
        except ConnectionResetError as error:
            raise httpcore.ReadError(str(error)) from error
        except ConnectionError as error:
            raise httpcore.RemoteProtocolError(_CLOSED_EARLY) from error

    def close(self) -> None:
        """Do nothing: a call leaves no connection."""


def make_service_context(service: Service) -> ssl.SSLContext:
    """Return the context of connections to a service, which they may share; raises as `make_context` does."""
    is_https = service.origin.scheme == "https"
    return make_context(service.network.ca_bundle) if is_https else make_empty_context()


def connect(
    service: Service,
    context: ssl.SSLContext,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    observe: Observer | None = None,
    draw: DrawWait | None = None,
) -> Connection:
    """Return a connection to a real service, through its proxy if it has one; it is opened by the first request.

    `draw` is called several times a second during a wait for a reply or for the host's address, with the
    seconds since the attempt began.
    """
    is_https = service.origin.scheme == "https"
    proxy = _proxy(service.network.proxy, context)
    on_wait = partial(draw, f"waiting for {service.origin}") if draw is not None else None
    transport = OriginTransport(is_https=is_https, context=context, proxy=proxy, monotonic=monotonic, on_wait=on_wait)
    return Connection(
        transport, observe, monotonic=monotonic, proxy=bytes(proxy.url).decode().rstrip("/") if proxy else None
    )


def connect_in_process(app: "WSGIApplication", *, observe: Observer | None = None) -> Connection:
    """Return a connection to a WSGI application in this process."""
    return Connection(InProcessTransport(app), observe)


def _proxy(url: str | None, context: ssl.SSLContext) -> httpcore.Proxy | None:
    if url is None:
        return None
    parsed = httpx.URL(url)
    auth = (parsed.username, parsed.password) if parsed.username else None
    bare = parsed.copy_with(username=None, password=None)
    return httpcore.Proxy(str(bare), auth=auth, ssl_context=context if parsed.scheme == "https" else None)


def _key_of(request: Request) -> str:
    """Return the API key that the request carries."""
    return next(value for name, value in request.headers if name == "Authorization").removeprefix("Bearer ")


@lru_cache(maxsize=64)
def _target(url: str) -> tuple[httpcore.URL, bytes]:
    """Return a URL as it goes out, and the Host that names its origin; the same many times where rows are sent."""
    parsed = httpx.URL(url)
    return httpcore.URL(str(parsed)), parsed.netloc


def _encode_headers(request: Request) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers as bytes, with the length of what is enclosed (RFC 9110 section 8.6)."""
    if request.body is None and request.method not in READING_METHODS and request.method != "DELETE":
        yield b"Content-Length", b"0"
    for name, value in request.headers:
        yield name.encode("ascii"), value.encode("ascii")
    if request.body is not None:
        yield b"Content-Length", str(len(request.body)).encode()


def _decode_headers(raw: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of a reply as texts, their names in lower case."""
    try:
        return tuple((name.decode("ascii").lower(), value.decode("ascii")) for name, value in raw)
    except UnicodeDecodeError:
        return tuple(httpx.Headers(list(raw)).multi_items())


class BodyError(Exception):
    """The body cannot be used; `kept` is how it began, for an excerpt."""

    def __init__(self, defect: Defect, kept: bytes) -> None:
        super().__init__(defect.value)
        self.defect = defect
        self.kept = kept


def collect(chunks: Iterable[bytes], *, limit: int, encoding: str) -> bytes:
    """Return the decoded body of at most `limit` bytes; raises BodyError.

    The request accepts no encoding but identity. A single gzip or deflate layer is decoded all the same, in
    bounded steps, and its end mark is checked, because a cut stream inflates without an error.
    """
    match encoding.strip().lower():
        case "identity" | "":
            return _collect_plain(chunks, limit)
        case "gzip" | "x-gzip":
            return _collect_inflated(chunks, limit, zlib.decompressobj(_GZIP_WINDOW))
        case "deflate":
            return _collect_inflated(chunks, limit, zlib.decompressobj())
        case _:
            raise BodyError(Defect.BAD_ENCODING, b"")


def _collect_plain(chunks: Iterable[bytes], limit: int) -> bytes:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > limit:
            raise BodyError(Defect.OVER_LIMIT, bytes(kept[: min(limit, _KEPT)]))
    return bytes(kept)


def _collect_inflated(chunks: Iterable[bytes], limit: int, inflater: "zlib._Decompress") -> bytes:
    kept = bytearray()
    for chunk in chunks:
        if inflater.eof and chunk:
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT]))
        try:
            kept += inflater.decompress(chunk, limit + 1 - len(kept))
        except zlib.error:
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT])) from None
        if len(kept) > limit:
            raise BodyError(Defect.OVER_LIMIT, bytes(kept[: min(limit, _KEPT)]))
        if inflater.unused_data:
            # A second member (RFC 1952 section 2.2), or anything else: what is read in part is not read.
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT]))
    if not inflater.eof:
        raise BodyError(Defect.CUT_SHORT, bytes(kept[:_KEPT]))
    return bytes(kept)


def _fault_of(error: Exception, *, sent: bool) -> Fault:
    """Name the fault; whether the request had left is evidence's to say, never the exception's."""
    match error:
        case NoAddressError():
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
    return _PLACE_IN_OPENSSL.sub("", str(error).strip()).rstrip(".")
