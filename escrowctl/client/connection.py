"""Send HTTP requests, one at a time, and read their replies up to a limit of seconds and of bytes.

Redirects are not followed. Cookies are not stored. Environment variables are not read.
"""

import re
import ssl
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import lru_cache, partial
from typing import TYPE_CHECKING

# httpx imports its own command line if click is installed (+40 ms); None stops that import.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # None is what stops an import
import h11
import httpcore
import httpx

from escrowctl.client.http import Answer, Evidence, Exchange, Fault, NotAllowedError, Request
from escrowctl.client.transport import NoAddressError, OriginTransport, Transport
from escrowctl.config.service import Service
from escrowctl.contract.json import Defect
from escrowctl.contract.redaction import Secret, star
from escrowctl.runtime import DrawWait

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_MAX_UNUSABLE_BYTES = 16 * 1024
"""The most bytes stored of a body that cannot be used: only its first line is shown."""

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

_parse_url = lru_cache(maxsize=16)(httpx.URL)  # all creates of a batch have one URL
_OPENSSL_SOURCE_LINE = re.compile(r" \(_ssl\.c:[0-9]+\)")

ExchangeObserver = Callable[[Request, Exchange, float], None]
"""Called after each exchange with the request, the exchange, and the seconds that the exchange took."""


class Connection:
    """Sends one request at a time to one service. `exchange` returns a network error as a `Fault`."""

    def __init__(
        self,
        transport: Transport,
        key: Secret,
        observe: ExchangeObserver | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        proxy: str | None = None,
    ) -> None:
        self._transport = transport
        self._key = key.reveal()
        self._observe = observe
        self._monotonic = monotonic
        self._proxy = proxy
        """The URL of the proxy, as it may be shown."""
        self.last: Exchange | None = None
        """The result of the last request; None before the first."""
        self.admission: Callable[[Request], AbstractContextManager[None]] = lambda _request: nullcontext()
        """Returns the block in which a request is sent. The start of the block may wait."""

    def exchange(self, request: Request, *, evidence: Evidence, seconds: float, limit: int) -> Exchange:
        """Send one request and return its result. Takes at most `seconds`; accepts a body of at most `limit` bytes.

        `evidence` is set before the first byte leaves, so that it is valid even if a signal ends this call.
        """
        with self.admission(request):
            start = self._monotonic()
            outgoing = httpx.Request(
                request.method,
                _parse_url(request.url),
                headers=[("Authorization", f"Bearer {self._key}"), *request.headers],
                content=request.body,
                extensions={"evidence": evidence, "seconds": seconds},
            )
            answer, fault, detail = None, None, ""
            try:
                with closing(self._transport.handle_request(outgoing)) as response:
                    headers = tuple(response.headers.multi_items())
                    encoding = ", ".join(value for name, value in headers if name == "content-encoding")
                    body, defect = read_body(response.iter_raw(), limit=limit, encoding=encoding)
                answer = Answer(response.status_code, headers, body, defect).without_key(self._key)
            except (httpcore.NetworkError, httpcore.TimeoutException, h11.ProtocolError, httpcore.ProxyError) as error:
                fault, detail = self._describe_error(error, sent=evidence.sent)
            except NotAllowedError:
                fault = Fault.LOCKS_LAPSED
            peer, is_shared = self._transport.peer, self._transport.is_shared
            exchange = Exchange(evidence.sent, answer, fault, star(detail, self._key), peer, self._proxy, is_shared)
            self.last = exchange
            if self._observe is not None:
                self._observe(request, exchange, self._monotonic() - start)
            return exchange

    def close(self) -> None:
        """Close the open network connections."""
        self._transport.close()

    def _describe_error(self, error: Exception, *, sent: bool) -> tuple[Fault, str]:
        """Return the fault that an error means, and a detail. With a proxy, a failed connect is `Fault.PROXY`."""
        fault = _find_fault(error, sent=sent)
        if fault in (Fault.BAD_PROTOCOL, Fault.BAD_REQUEST):
            # h11 quotes the line that it cannot read, and a service may have put the key there.
            return fault, ""
        detail = _OPENSSL_SOURCE_LINE.sub("", str(error).strip()).rstrip(".")
        if self._proxy is None or fault not in (Fault.NO_NAME, Fault.NO_CONNECTION, Fault.PROXY):
            return fault, detail
        return Fault.PROXY, ": ".join(filter(None, (self._proxy, detail)))


class InProcessTransport(Transport):
    """Calls the sandbox's WSGI application in this process, in place of a network connection.

    If the application raises ConnectionError, it has dropped the connection before or during its reply. An empty
    chunk means that the reply is not ready (PEP 3333); after the deadline, an empty chunk ends the attempt.
    """

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app
        self._wsgi = httpx.WSGITransport(app=self._call_application)
        self._end = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Mark the request as sent, call the application and return the response."""
        self._end = time.monotonic() + request.extensions["seconds"]
        request.extensions["evidence"].mark_sent()
        return self._wsgi.handle_request(request)

    def _call_application(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        """Call the application. If it drops the connection, raise what httpcore raises for a real socket."""
        try:
            # httpx decodes the path; PEP 3333 wants its bytes as Latin-1.
            environ["PATH_INFO"] = environ["PATH_INFO"].encode().decode("latin-1")
            for chunk in self._app(environ, start_response):
                yield chunk
                if not chunk and time.monotonic() >= self._end:
                    raise httpcore.ReadTimeout("the deadline passed")
        except ConnectionResetError as error:
            raise httpcore.ReadError(str(error)) from error
        except ConnectionError as error:
            raise httpcore.ReadError("Server disconnected without sending a response") from error


def connect(
    service: Service,
    context: ssl.SSLContext | None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    observe: ExchangeObserver | None = None,
    draw_wait: DrawWait | None = None,
) -> Connection:
    """Return a connection to a service, through the configured proxy if any. The first request opens it.

    `context` is None for plain http. `draw_wait` is called while a name is looked up and while a reply is awaited.
    """
    proxy = None
    if service.network.proxy is not None:
        parsed = httpx.URL(service.network.proxy)
        auth = (parsed.username, parsed.password) if parsed.username else None
        bare = parsed.copy_with(username=None, password=None)
        proxy = httpcore.Proxy(str(bare), auth=auth, ssl_context=context if parsed.scheme == "https" else None)
    on_wait = partial(draw_wait or (lambda *_: None), f"waiting for {service.origin}")
    transport = OriginTransport(context=context, proxy=proxy, monotonic=monotonic, on_wait=on_wait)
    shown = bytes(proxy.url).decode().rstrip("/") if proxy else None
    return Connection(transport, service.key, observe, monotonic=monotonic, proxy=shown)


def read_body(chunks: Iterable[bytes], *, limit: int, encoding: str) -> tuple[bytes, Defect | None]:
    """Return the decoded body and None; for an unusable body or one over `limit` bytes, its start and the defect.

    `encoding` is the reply's Content-Encoding. Requests ask for identity, but one gzip or deflate layer is decoded.
    The end mark of compressed data is checked, because zlib reports no error for truncated data.
    """
    kept = bytearray()
    try:
        defect = _collect(kept, chunks, limit, encoding.strip().lower())
    except zlib.error:
        defect = Defect.BAD_ENCODING
    except (httpcore.NetworkError, httpcore.TimeoutException, h11.ProtocolError):
        defect = Defect.CUT_SHORT
    return bytes(kept if defect is None else kept[: min(limit, _MAX_UNUSABLE_BYTES)]), defect


def _collect(kept: bytearray, chunks: Iterable[bytes], limit: int, encoding: str) -> Defect | None:
    is_plain = encoding in ("", "identity")
    if not is_plain and encoding not in ("gzip", "x-gzip", "deflate"):
        return Defect.BAD_ENCODING
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    for chunk in chunks:
        kept += chunk if is_plain else inflater.decompress(chunk, limit + 1 - len(kept))
        if len(kept) > limit:
            return Defect.OVER_LIMIT
        if inflater.unused_data:
            # A second member (RFC 1952 section 2.2), or other data: a partly decoded body is not used.
            return Defect.BAD_ENCODING
    return None if is_plain or inflater.eof else Defect.CUT_SHORT


def _find_fault(error: Exception, *, sent: bool) -> Fault:
    """Return the fault that an error means. `sent` is `Evidence.sent`: the error does not show it."""
    match error:
        case NoAddressError():
            return Fault.NO_NAME
        case httpcore.ProxyError():
            return Fault.PROXY
        case h11.LocalProtocolError():
            return Fault.BAD_REQUEST
        case httpcore.TimeoutException():
            return Fault.TIMEOUT if sent else Fault.CONNECT_TIMEOUT
        case httpcore.ConnectError():
            return Fault.TLS if _is_tls_error(error) else Fault.NO_CONNECTION
        case h11.ProtocolError() if not str(error).startswith("peer "):  # h11's "peer closed ..."
            return Fault.BAD_PROTOCOL
        case _:
            return Fault.BROKEN_OFF if sent else Fault.NO_CONNECTION


def _is_tls_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
