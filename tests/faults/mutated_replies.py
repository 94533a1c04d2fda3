"""Replies that are changed at random. Reply N of a seed is always the same: `reply_of(seed, N)`."""

import gzip
import random
import re
from collections.abc import Callable

from conftest import KEY

RECORD = b'{"id":"tx_7K2M9QHD","status":"held","amount":100.00,"currency":"USD","created_at":"2026-11-21T03:12:44Z"}'
LIST = b'{"data":[' + RECORD + b',{"id":7,"status":null,"amount":{"value":"12.5","currency":"EUR"}}],"next":null}'
WEBHOOK = (
    rb'{"id":"wh_1","url":"https:\/\/hooks.example.net\/","events":["a","\u00e9\ud83d\ude00"],"secret":"whsec_abc"}'
)
PROBLEM = b'{"type":"about:blank","title":"No","status":400,"detail":"beneficiary blocked","errors":[{"detail":"x"}]}'
LIMIT = 1024 * 1024


def http(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Content-Type: application/json", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def in_chunks(body: bytes) -> bytes:
    pieces = [body[start : start + 40] for start in range(0, len(body), 40)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


EXAMPLES = (
    http(RECORD),
    http(b'{"data":' + RECORD + b"}"),
    http(LIST),
    http(b"[" + RECORD + b"]"),
    http(WEBHOOK, status=b"201 Created"),
    http(b""),
    http(b"", b"Location: /api/v1/transactions/tx_1", status=b"201 Created"),
    http(b'{"code":40001,"msg":"insufficient balance"}'),
    b"HTTP/1.1 204 No Content\r\n\r\n",
    http(PROBLEM, status=b"400 Bad Request"),
    http(PROBLEM, b"Retry-After: 3", b"Date: Sat, 21 Nov 2026 03:12:44 GMT", status=b"429 Too Many Requests"),
    http(b"<html>", status=b"502 Bad Gateway"),
    http(b"", b"Location: https://elsewhere.test/x", status=b"307 Temporary Redirect"),
    http(gzip.compress(LIST, mtime=0), b"Content-Encoding: gzip"),
    b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + http(RECORD),
    b"HTTP/1.0 200 OK\r\n\r\n" + RECORD,
    in_chunks(LIST),
)

ODD_BYTES = (
    *(b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\x1b[2J", b"\xe2\x80\xae"),
    *(rb"\ud800", rb"\udc00\ud800", rb"\u0000", rb"\u202e", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\r\n"),
    *(b"\r\n\r\n", b"NaN", b"-Infinity", b"null", b"false", b'{"error":"x"}', b'"id":"other",', b"<", b"HTTP/1.1 "),
    KEY.encode(),
)  # fmt: skip
ODD_NUMBERS = (
    *(b"0", b"-0", b"00", b"-", b"1e5", b"1E+400", b"1e-999999999999999999999", b"1e9999999999999999999", b"0.1e1"),
    *(b"1" * 128, b"1" * 129, b"9" * 5000, b"1.", b".5", b"+1", b"0x1f", b"1_000", "\u0661".encode(), b"1e", b"1" * 40),
)  # fmt: skip
ODD_HEADERS = (
    *(b"Content-Length: 3", b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: x"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Content-Encoding: gzip", b"Content-Encoding: br"),
    *(b"Content-Encoding: deflate", b"Connection: close", b"Connection: keep-alive", b"Retry-After: \xb2", b"X: \x9b"),
    *(b"Content-Type: text/html; charset=utf-7", b"Location: \x9d8;;", b"Set-Cookie: a=b", b": x", b"X :y", b" folded"),
    *(b"X-Request-Id: " + KEY.encode(), b"Upgrade: h2c", b"Trailer: X", b"Date: never", b"Content-Encoding: "),
)  # fmt: skip

Mutation = Callable[[bytes, random.Random], bytes]


def flip_bits(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def leave_out(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice((1, 2, 5, 20)) :]


def repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    piece = data[start : start + chance.choice((1, 5, 30, len(data)))]
    # Just over the limit of a reply is enough; more would only be this file's own memory.
    times = min(chance.choice((2, 3, 200)), 2 * LIMIT // max(len(piece), 1) + 1)
    return data[:start] + piece * times + data[start:]


def put_in(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.choice((*ODD_BYTES, chance.randbytes(4))) + data[start:]


NUMBER = re.compile(rb"[0-9]+(\.[0-9]+)?")


def change_number(data: bytes, chance: random.Random) -> bytes:
    found = NUMBER.search(data, chance.randrange(len(data))) or NUMBER.search(data)
    return data[: found.start()] + chance.choice(ODD_NUMBERS) + data[found.end() :] if found else data


def nest(data: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((1, 2, 30, 31, 32, 33, 100, 5_000, 100_000))
    opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"data":', b"}")))
    return opening * depth + data + closing * depth


def squeeze(data: bytes, chance: random.Random) -> bytes:
    packed = gzip.compress(data, mtime=0)
    return cut(packed, chance) if chance.random() < 0.3 else packed


def change_headers(head: bytes, chance: random.Random) -> bytes:
    lines = head.split(b"\r\n")
    position = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines.insert(position + 1, chance.choice(ODD_HEADERS))
        case 1:
            lines.insert(position, lines[position])
        case 2:
            del lines[position]
        case _:
            lines[0] = b"HTTP/1.1 %d Odd" % chance.randrange(100, 1000)
    return b"\r\n".join(lines)


ANYWHERE: tuple[Mutation, ...] = (flip_bits, cut, leave_out, repeat, put_in)
IN_BODIES: tuple[Mutation, ...] = (*ANYWHERE, change_number, change_number, nest, put_in)


def reply_of(seed: int, number: int) -> tuple[bytes, random.Random]:
    """Return the mutated reply with that number, and the random generator for its next decisions."""
    chance = random.Random(f"{seed}:{number}")
    data = chance.choice(EXAMPLES)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        head, line, body = data.partition(b"\r\n\r\n")
        if not data:
            break
        kind = chance.random()
        if kind < 0.25:
            data = chance.choice(ANYWHERE)(data, chance)
        elif kind < 0.45:
            data = change_headers(head, chance) + line + body
        elif body:
            changed = chance.choice(IN_BODIES)(body, chance)
            if kind > 0.95:
                head, changed = head + b"\r\nContent-Encoding: gzip", squeeze(changed, chance)
            if chance.random() < 0.8:  # else no reader would decompress it
                head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(changed), head)
            data = head + line + changed
    return data, chance
