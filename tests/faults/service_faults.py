"""What a service may do wrong, and the exit code of each of six commands then.

The exit codes are written by hand, row by row: 12 where a write may have been applied, 11 where no byte left, 10
where a read failed, 8 where the status proves that nothing was applied. None of them comes from escrowctl.
"""

import gzip
import socket
import ssl
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from faults.misbehaving_service import Connection, Misbehave

Ends = tuple[int, int, int, int, int, int]
"""Exit codes of tx create, tx get, tx release, tx list, webhook create, tx update."""

COMMANDS = ("create", "get", "release", "list", "webhook", "update")
WRITES = ("create", "release", "webhook", "update")

NOBODY_KNOWS: Ends = (12, 10, 12, 10, 12, 12)
"""A write may have been applied; a read has failed."""
DONE: Ends = (0, 0, 0, 0, 0, 0)
NO_BODY: Ends = (12, 10, 0, 10, 0, 0)
"""A 2xx without a body: enough for what moves no money and for a release, not for a create without an id."""
NEVER_SENT: Ends = (11, 11, 11, 11, 11, 11)


def every(code: int) -> Ends:
    """All six end with one code: the service refused."""
    return (code, code, code, code, code, code)


@dataclass(frozen=True)
class Reply:
    """A reply in well-formed HTTP, so that it can be played over a socket and in-process alike."""

    status: str
    headers: tuple[str, ...] = ()
    body: Callable[[bytes], bytes] | bytes = b""
    """The body, or what makes it of the right one."""

    def body_of(self, right: bytes) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body(right)


@dataclass(frozen=True)
class Row:
    """One misbehaviour. `reading` is how a release ends whose own reading meets it, where not as `tx get` does."""

    name: str
    what: Misbehave | Reply
    ends: Ends
    reading: int | None = None
    on_arrival: bool = False
    https: bool = False
    """The client speaks TLS to it."""
    tries: int = 1
    """How often a write is tried: more than once only on proof that it was not applied."""

    def misbehave(self, connection: Connection) -> None:
        if isinstance(self.what, Reply):
            connection.send(framed(self.what, connection.right).replace(b"{elsewhere}", connection.elsewhere.encode()))
        else:
            self.what(connection)

    def ends_reading(self) -> int:
        return self.ends[1] if self.reading is None else self.reading


def framed(reply: Reply, right: bytes) -> bytes:
    """Return a reply's bytes with a right Content-Length."""
    body = reply.body_of(right)
    lines = [f"HTTP/1.1 {reply.status}", f"Content-Length: {len(body)}", *reply.headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def complete(right: bytes, status: str = "200 OK", *headers: str) -> bytes:
    return framed(Reply(status, headers, right), right)


def sends(data: bytes | Callable[[bytes], bytes]) -> Misbehave:
    """Send these bytes, or what is made of the right body, and close."""
    return lambda connection: connection.send(data if isinstance(data, bytes) else data(connection.right))


def says(body: bytes | Callable[[bytes], bytes], *headers: str) -> Reply:
    """A 200 with this body."""
    return Reply("200 OK", ("Content-Type: application/json", *headers), body)


def hang_up(connection: Connection) -> None:
    connection.socket.shutdown(socket.SHUT_RDWR)


def hang_up_half(connection: Connection) -> None:
    """Say "no more from me" at once, and read what comes."""
    connection.socket.shutdown(socket.SHUT_WR)
    connection.wait_for_the_other_end()


def reset_unread(connection: Connection) -> None:
    connection.wait_for_the_first_byte()
    connection.reset()


def read_a_little_and_reset(connection: Connection) -> None:
    connection.socket.recv(20)
    connection.reset()


def stay_silent(connection: Connection) -> None:
    if not connection.was_read:
        connection.wait_for_the_first_byte()
    connection.hurry()
    connection.wait_for_the_other_end()


def answer_in_tls(connection: Connection) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.wrap_socket(connection.socket, server_side=True)


def answer_before_reading(connection: Connection) -> None:
    connection.send(complete(connection.right, "200 OK", "Connection: close"))
    connection.read_request()


def give_up_before_reading(connection: Connection) -> None:
    """As servers end a connection that was idle for too long."""
    connection.send(complete(b"", "408 Request Timeout", "Connection: close"))
    connection.read_request()


def part_then_reset(part: Callable[[bytes], bytes]) -> Misbehave:
    """Send a part; break off once it has been looked at."""

    def misbehave(connection: Connection) -> None:
        connection.send(part(connection.right))
        connection.socket.settimeout(0.05)
        with_nothing_more(connection)
        connection.reset()

    return misbehave


def with_nothing_more(connection: Connection) -> None:
    try:
        connection.socket.recv(1)
    except TimeoutError:
        return


def drip(start: bytes, then: bytes) -> Misbehave:
    """A byte at a time for ever, each one in good time by itself; the deadline is over after a few."""

    def misbehave(connection: Connection) -> None:
        connection.send(start)
        for number in range(2_000):
            connection.send(then)
            if number == 3:
                connection.hurry()
            connection.socket.settimeout(0.005)
            try:
                if not connection.socket.recv(65536):
                    return
            except TimeoutError:
                continue

    return misbehave


def flood(piece: bytes) -> Misbehave:
    """As much as the client takes, until its deadline."""

    def misbehave(connection: Connection) -> None:
        connection.send(piece * 1_000)
        connection.hurry()
        while True:
            connection.send(piece * 1_000)

    return misbehave


def giant(head: bytes, piece: bytes) -> Misbehave:
    """A reply without an end; the client must leave, for the server does not."""

    def misbehave(connection: Connection) -> None:
        connection.send(head)
        for _ in range(200_000_000 // len(piece)):
            connection.send(piece)

    return misbehave


@cache
def bomb(_right: bytes = b"") -> bytes:
    """Return a gzip stream of 80 MB of zeros: small on the wire, larger than any limit once undone."""
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return b"".join(squeezer.compress(bytes(1_000_000)) for _ in range(80)) + squeezer.flush()


def chunked(right: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(right), right)


def with_first_key_twice(right: bytes) -> bytes:
    return right.replace(b'{"id"', b'{"id":"x","id"')


GZIP = "Content-Encoding: gzip"
ELSEWHERE = "Location: {elsewhere}/api/v1/transactions/tx_1"
HTML = b"<!doctype html><title>Maintenance</title><h1>Back soon</h1>"
FLOOD = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

ROWS: tuple[Row, ...] = (
    # Connections
    Row("reset before reading", reset_unread, NOBODY_KNOWS, on_arrival=True),
    Row("reset after reading a little", read_a_little_and_reset, NOBODY_KNOWS, on_arrival=True),
    Row("reset after reading", Connection.reset, NOBODY_KNOWS),
    Row("hang up before reading", hang_up, NOBODY_KNOWS, on_arrival=True),
    Row("hang up after reading", hang_up, NOBODY_KNOWS),
    Row("hang up one way", hang_up_half, NOBODY_KNOWS, on_arrival=True),
    Row("silence, nothing read", stay_silent, NOBODY_KNOWS, on_arrival=True),
    Row("silence", stay_silent, NOBODY_KNOWS),
    Row("TLS on the plain port", answer_in_tls, NOBODY_KNOWS, on_arrival=True),
    Row("plain HTTP on the TLS port", sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), NEVER_SENT, on_arrival=True,
        https=True, tries=1),
    Row("a reset of the TLS handshake", read_a_little_and_reset, NEVER_SENT, on_arrival=True, https=True, tries=3),
    Row("a right answer before the request is read", answer_before_reading, DONE, on_arrival=True),
    Row("408 before the request is read", give_up_before_reading, NOBODY_KNOWS, on_arrival=True),
    # Heads
    Row("half a status line", sends(b"HTTP/1.1 20"), NOBODY_KNOWS),
    Row("half the headers", sends(b"HTTP/1.1 200 OK\r\nContent-Type: appl"), NOBODY_KNOWS),
    Row("half the headers and a reset", part_then_reset(lambda _: b"HTTP/1.1 200 OK\r\nContent-Ty"), NOBODY_KNOWS),
    Row("not HTTP", sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), NOBODY_KNOWS),
    Row("another protocol's 220", sends(b"220 mail.example.com ESMTP\r\n"), NOBODY_KNOWS),
    Row("HTTP/0.9: a body alone", sends(lambda right: right), NOBODY_KNOWS),
    Row("HTTP/2 in a status line", sends(lambda right: complete(right).replace(b"HTTP/1.1", b"HTTP/2")), NOBODY_KNOWS),
    Row("a status of four digits", sends(lambda right: complete(right, "2000 OK")), NOBODY_KNOWS),
    Row("a status of two digits", sends(lambda right: complete(right, "20 OK")), NOBODY_KNOWS),
    Row("a header with NUL", sends(lambda right: complete(right, "200 OK", "X-A: b\x00c")), NOBODY_KNOWS),
    Row("a header without a colon", sends(lambda right: complete(right, "200 OK", "nonsense")), NOBODY_KNOWS),
    Row("a header of 4 MB", giant(b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 4096), NOBODY_KNOWS),
    Row("headers without an end", giant(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 512), NOBODY_KNOWS),
    Row("drip in the head", drip(b"HTTP/1.1 200 OK\r\nX-A: ", b"x"), NOBODY_KNOWS),
    Row("100 Continue without end", flood(b"HTTP/1.1 100 Continue\r\n\r\n"), NOBODY_KNOWS),
    Row("103 without end", flood(FLOOD), NOBODY_KNOWS),
    Row("103 a hundred times, then an answer", sends(lambda right: FLOOD * 100 + complete(right)), DONE),
    Row("103 and no answer", sends(FLOOD), NOBODY_KNOWS),
    Row("101, unasked", Reply("101 Switching Protocols", ("Upgrade: h2c", "Connection: Upgrade")), NOBODY_KNOWS),
    # Frames
    Row("half a body", sends(lambda right: complete(right)[:-9]), NOBODY_KNOWS),
    Row("half a body and a reset", part_then_reset(lambda right: complete(right)[:-9]), NOBODY_KNOWS),
    Row("half a body without a length", sends(lambda right: b"HTTP/1.1 200 OK\r\n\r\n" + right[:-9]), NOBODY_KNOWS),
    Row("no body where one is announced", sends(lambda right: complete(right)[: -len(right)]), NOBODY_KNOWS),
    Row("Content-Length too large", sends(lambda right: complete(right).replace(b"Length: ", b"Length: 9")),
        NOBODY_KNOWS),
    Row("Content-Length too small", sends(lambda right: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + right),
        NOBODY_KNOWS),
    Row("Content-Length 0 and a body", sends(lambda right: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + right),
        NO_BODY),
    Row("Content-Length that is none", sends(lambda right: complete(right).replace(b"Length: ", b"Length: -")),
        NOBODY_KNOWS),
    Row("two Content-Lengths", sends(lambda right: complete(right, "200 OK", "Content-Length: 3")), NOBODY_KNOWS),
    Row("drip in the body", drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{", b" "), NOBODY_KNOWS),
    Row("chunks cut short", sends(chunked), NOBODY_KNOWS),
    Row("a chunk cut short", sends(lambda right: chunked(right)[:-9]), NOBODY_KNOWS),
    Row("a chunk's size that is none", sends(lambda right: chunked(right) + b"zz\r\n\r\n"), NOBODY_KNOWS),
    Row("a chunk longer than it says", sends(lambda right: chunked(right)[:-2] + b"xx0\r\n\r\n"), NOBODY_KNOWS),
    Row("a chunk of 2^64 bytes",
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n{}"), NOBODY_KNOWS),
    Row("another transfer encoding", sends(lambda right: complete(right, "200 OK", "Transfer-Encoding: gzip")),
        NOBODY_KNOWS),
    Row("a body without end", giant(b"HTTP/1.1 200 OK\r\n\r\n{", b" " * 1_000_000), NOBODY_KNOWS),
    Row("two replies at once", sends(lambda right: complete(right) + complete(b"", "500 Oh No")), DONE),
    # Bodies
    Row("a gzip bomb", says(bomb, GZIP), NOBODY_KNOWS),
    Row("half a gzip", says(lambda right: gzip.compress(right)[:-12], GZIP), NOBODY_KNOWS),
    Row("gzip without its checksum", says(lambda right: gzip.compress(right)[:-8], GZIP), NOBODY_KNOWS),
    Row("gzip with a wrong checksum", says(lambda right: gzip.compress(right)[:-8] + bytes(8), GZIP), NOBODY_KNOWS),
    Row("gzip and more", says(lambda right: gzip.compress(right) + b"more", GZIP), NOBODY_KNOWS),
    Row("not gzip", says(lambda right: right, GZIP), NOBODY_KNOWS),
    Row("gzip that is not announced", says(gzip.compress), NOBODY_KNOWS),
    Row("gzip twice, announced once", says(lambda right: gzip.compress(gzip.compress(right)), GZIP), NOBODY_KNOWS),
    Row("gzip twice, announced twice", says(lambda right: gzip.compress(gzip.compress(right)), GZIP, GZIP),
        NOBODY_KNOWS),
    Row("gzip, unasked and right", says(gzip.compress, GZIP), DONE),
    Row("brotli", says(b"\x0b\x02\x80{}\x03", "Content-Encoding: br"), NOBODY_KNOWS),
    Row("an unknown encoding", says(lambda right: right, "Content-Encoding: rot13"), NOBODY_KNOWS),
    Row("bad UTF-8", says(lambda right: right.replace(b"tx_", b"tx_\xff")), NOBODY_KNOWS),
    Row("UTF-16", says(lambda right: right.decode().encode("utf-16")), NOBODY_KNOWS),
    Row("a byte order mark", says(lambda right: b"\xef\xbb\xbf" + right), NOBODY_KNOWS),
    Row("half a character", says(lambda right: right.replace(b"held", rb"\udc00")), NOBODY_KNOWS),
    Row("NaN", says(lambda right: right.replace(b"100", b"NaN")), NOBODY_KNOWS),
    Row("minus infinity", says(lambda right: right.replace(b"100", b"-Infinity")), NOBODY_KNOWS),
    Row("a key twice", says(with_first_key_twice), NOBODY_KNOWS),
    Row("nested 200,000 deep", says(b"[" * 200_000 + b"]" * 200_000), NOBODY_KNOWS),
    Row("nested 100 deep", says(b'{"a":' * 100 + b"1" + b"}" * 100), NOBODY_KNOWS),
    Row("a number of 5,000 digits", says(lambda right: right.replace(b"100", b"1" * 5000)), NOBODY_KNOWS),
    Row("a number out of all range", says(lambda right: right.replace(b"100", b"1e9999999999999999999")),
        NOBODY_KNOWS),
    Row("JSON and more", says(lambda right: right + b"}"), NOBODY_KNOWS),
    Row("single quotes", says(lambda right: right.replace(b'"', b"'")), NOBODY_KNOWS),
    Row("HTML and 200", Reply("200 OK", ("Content-Type: text/html",), HTML), NOBODY_KNOWS),
    Row("empty and 200", Reply("200 OK"), NO_BODY),
    Row("empty and 201", Reply("201 Created"), NO_BODY),
    Row("spaces and 200", says(b" \r\n\t"), NO_BODY),
    Row("204", Reply("204 No Content"), NO_BODY),
    # A bare `false` is a refusal: nothing was created, released or read.
    Row("JSON false", says(b"false"), (12, 16, 12, 10, 12, 12), reading=10),
    Row("JSON null", says(b"null"), (12, 16, 0, 10, 0, 0), reading=10),
    Row("a JSON text", says(b'"OK"'), (12, 16, 0, 10, 0, 0), reading=10),
    # What names nothing, or nothing of the service's own, created nothing.
    Row("an empty record", says(b"{}"), (12, 16, 0, 10, 0, 0), reading=10),
    Row("a code that is no success", says(b'{"code":40001,"msg":"insufficient balance"}'), (12, 16, 12, 10, 12, 12),
        reading=10),
    Row("a message alone", says(b'{"message":"Welcome to the API"}'), (12, 16, 12, 10, 12, 12), reading=10),
    Row("202 and the record", Reply("202 Accepted", (), lambda right: right), DONE),
    Row("202 and no id", Reply("202 Accepted", (), b'{"job":7,"state":"queued"}'), (12, 0, 0, 10, 0, 0)),
    Row("201 and a Location", Reply("201 Created", ("Location: /api/v1/transactions/tx_made",)),
        (0, 10, 0, 10, 0, 0)),
    Row("201 and a Location elsewhere",
        Reply("201 Created", ("Location: https://elsewhere.test/api/v1/transactions/tx_made",)), NO_BODY),
    Row("success false", says(b'{"success":false}'), NOBODY_KNOWS),
    Row("an error and 200", says(b'{"error":{"code":"insufficient_funds"}}'), NOBODY_KNOWS),
    Row("errors in an envelope and 200", says(b'{"data":{"errors":["insufficient funds"]}}'), NOBODY_KNOWS),
    Row("a problem (RFC 9457) and 200", Reply("200 OK", ("Content-Type: application/problem+json",),
        b'{"type":"about:blank","title":"Payment Required","status":402,"detail":"no funds"}'), NOBODY_KNOWS),
    # Statuses
    Row("206, unasked", Reply("206 Partial Content", ("Content-Range: bytes 0-99/9999",), lambda right: right),
        NOBODY_KNOWS),
    Row("301 elsewhere", Reply("301 Moved Permanently", (ELSEWHERE,)), every(8)),
    Row("302 elsewhere", Reply("302 Found", (ELSEWHERE,)), (12, 8, 12, 8, 12, 12)),
    Row("303 elsewhere", Reply("303 See Other", (ELSEWHERE,)), (12, 8, 12, 8, 12, 12)),
    Row("307 elsewhere", Reply("307 Temporary Redirect", (ELSEWHERE,)), every(8)),
    Row("308 elsewhere", Reply("308 Permanent Redirect", (ELSEWHERE,)), every(8)),
    Row("401", Reply("401 Unauthorized", ("WWW-Authenticate: Bearer",), b'{"detail":"no"}'), every(4)),
    Row("403", Reply("403 Forbidden", (), b'{"detail":"no"}'), every(5)),
    Row("404", Reply("404 Not Found", (), HTML), every(6)),
    Row("408", Reply("408 Request Timeout"), NOBODY_KNOWS),
    Row("409", Reply("409 Conflict", (), b'{"detail":"no"}'), (12, 7, 7, 7, 12, 7)),
    Row("418", Reply("418 I'm a teapot"), (12, 8, 12, 8, 12, 12)),
    Row("422 with a lone surrogate", Reply("422 No", (), rb'{"detail":"\udc00"}'), every(8)),
    Row("425", Reply("425 Too Early"), every(9), tries=3),
    Row("429, wait a second", Reply("429 Too Many Requests", ("Retry-After: 1",)), every(9), tries=3),
    Row("429, wait a year", Reply("429 Too Many Requests", ("Retry-After: 31536000",)), every(9)),
    Row("429, wait for nonsense", Reply("429 Too Many Requests", ("Retry-After: \xb2",)), every(9), tries=3),
    Row("500 after the commit", Reply("500 Oh No", (), lambda right: right), NOBODY_KNOWS),
    Row("501", Reply("501 Not Implemented"), (8, 10, 8, 10, 8, 8)),
    Row("502 in HTML", Reply("502 Bad Gateway", (), HTML), NOBODY_KNOWS),
    Row("503, wait a second", Reply("503 Service Unavailable", ("Retry-After: 1",)), NOBODY_KNOWS),
    Row("504", Reply("504 Gateway Timeout"), NOBODY_KNOWS),
    Row("999", Reply("999 Odd"), NOBODY_KNOWS),
    Row("half a 400", sends(b'HTTP/1.1 400 No\r\nContent-Length: 99\r\n\r\n{"detail"'), every(8)),
)  # fmt: skip
"""Every misbehaviour of a service that was connected to."""

IN_PROCESS = tuple(
    row
    for row in ROWS
    if isinstance(row.what, Reply)
    and row.what.status != "101 Switching Protocols"
    and all(header.isascii() for header in row.what.headers)
)
"""Those that an application can play: not what is between hops, nor bytes that WSGI has no text for."""
