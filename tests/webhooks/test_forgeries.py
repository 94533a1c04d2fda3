"""Forged and mangled deliveries: none is stored, none is answered by an exception.

The long form: `pytest -m long tests/webhooks`. A failed run prints its seed.
"""

import base64
import hashlib
import io
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from faults.seeds import draw_seed
from webhook_sender import KEY, body_of, headers_of, sign

from escrowctl.config.service import WebhookSettings
from escrowctl.webhooks.receiver import Receiver
from escrowctl.webhooks.signing import Delivery, Verifier
from escrowctl.webhooks.signing import sign as sign_by_library
from escrowctl.webhooks.spool import open_spool

AT = 1_795_000_000
NOW = datetime.fromtimestamp(AT, UTC)
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
JUNK = [chr(code) for code in range(256)]

Draw = random.Random
Sent = tuple[dict[str, str], bytes]
Mangle = Callable[[Draw, dict[str, str], bytes], Sent]


def _body(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    place = draw.randrange(len(body))
    changed = bytes([body[place] ^ (1 << draw.randrange(8))])
    return headers, draw.choice([body[:place], body + body[:place] + b" ", body[:place] + changed + body[place + 1 :]])


def _id(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    event_id = headers["webhook-id"]
    moved = [f"{event_id}.{AT}", event_id[:-1], f"{event_id}x", event_id.upper(), "", draw.choice(JUNK) + event_id]
    return headers | {"webhook-id": draw.choice(moved)}, body


def _time(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    other, junk = AT + draw.choice([-1, 1, 10**9]), draw.choice(JUNK)
    texts = [str(other), f"{AT}.0", f" {AT}e0", f"+{AT}", f"0{AT}", "nan", "1e400", "", f"{AT}{junk}"]
    return headers | {"webhook-timestamp": draw.choice(texts)}, body


def _signature(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    text = headers["webhook-signature"]
    place, char = draw.randrange(len(text)), draw.choice(draw.choice([list(BASE64), JUNK]))
    before, after = text[:place], text[place + 1 :]
    changed = [before + char + text[place:], before + char + after, before + after, before, after]
    return headers | {"webhook-signature": draw.choice(changed)}, body


def _format(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    bare = headers["webhook-signature"][3:]
    texts = [
        *("v1", "v1,", ",", "v1,ü", " ".join(["v1,AAAA"] * 500)),
        *(f"v2,{bare}", f"V1,{bare}", f"v1;{bare}", bare, f"v1,,{bare}", f"v1,{bare},", f"v1a,{bare}"),
    ]
    return headers | {"webhook-signature": draw.choice(texts)}, body


def _other_key(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    key = draw.choice([b"", b"\0", KEY[:-1], KEY + b"\0", KEY[::-1], base64.b64encode(KEY), draw.randbytes(32)])
    return headers_of(headers["webhook-id"], body, sent_at=AT, key=key), body


def _other_content(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    event_id = headers["webhook-id"]
    wrong = [
        sign(event_id, AT, b""),
        sign("", AT, body),
        sign(f"{event_id}.{AT}", AT, body),
        "v1," + base64.b64encode(hashlib.sha256(KEY + body).digest()).decode(),
        "v1," + base64.b64decode(sign(event_id, AT, body)[3:]).hex(),
    ]
    return headers | {"webhook-signature": draw.choice(wrong)}, body


def _late(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    sent_at = AT + draw.choice([-1, 1]) * draw.randrange(301, 10**9)
    return headers_of(headers["webhook-id"], body, sent_at=sent_at), body


def _missing(draw: Draw, headers: dict[str, str], body: bytes) -> Sent:
    left_out = draw.choice(list(headers))
    return {name: value for name, value in headers.items() if name != left_out}, body


MANGLES: tuple[Mangle, ...] = (_body, _id, _time, _signature, _format, _other_key, _other_content, _late, _missing)


def is_same(one: Sent, other: Sent) -> bool:
    """Whether two are the same by HTTP: spaces around a header's value mean nothing (RFC 9110 section 5.5)."""
    bare = [{name: value.strip(" ") for name, value in headers.items()} for headers, _ in (one, other)]
    return bare[0] == bare[1] and one[1] == other[1]


def forge(draw: Draw, number: int) -> Sent:
    body = body_of(number)
    genuine = headers_of(f"msg_{number}", body, sent_at=AT), body
    while is_same(forged := draw.choice(MANGLES)(draw, *genuine), genuine):
        pass
    return forged


def deliver(receiver: Receiver, headers: dict[str, str], body: bytes) -> str:
    """Make a request as the WSGI server would, and return the status."""
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    environ = {"REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), **named}
    statuses: list[str] = []

    def start_response(status: str, _headers: object, _error: object = None) -> Callable[[bytes], object]:
        statuses.append(status)
        return lambda _data: None

    assert list(receiver(environ, start_response)) == []
    return statuses[0]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with open_spool(tmp_path / "webhooks.db", "service") as spool:
        yield Receiver(spool, Verifier(WebhookSettings(), [KEY]), now=lambda: NOW)


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_no_forged_delivery_is_stored(count: int, receiver: Receiver) -> None:
    draw = random.Random(draw_seed())
    statuses: Counter[str] = Counter()

    for start in range(0, count, TURN):
        forged = [forge(draw, number) for number in range(start, start + TURN)]
        with receiver.group():
            statuses.update(deliver(receiver, *one) for one in forged)
        assert [arrival.event for arrival in receiver.take_arrivals() if arrival.event is not None] == []

    assert set(statuses) == {"401 Unauthorized"}
    body = body_of(-1)
    with receiver.group():
        assert deliver(receiver, headers_of("msg_genuine", body, sent_at=AT), body) == "200 OK"
    assert [arrival.event.verified for arrival in receiver.take_arrivals() if arrival.event] == [True]


TURN = 100
"""How many requests share a commit."""


def test_library_signs_as_ten_lines_of_hmac_do() -> None:
    draw = random.Random(draw_seed())
    for _ in range(300):
        key, sent_at = draw.randbytes(draw.randrange(24, 65)), draw.randrange(1, 10**11)
        body = "".join(chr(draw.choice([draw.randrange(0xD800), 0x1F600])) for _ in range(draw.randrange(50))).encode()
        event_id = f"msg_{draw.random()}"

        assert sign_by_library(key, event_id, sent_at, body) == sign(event_id, sent_at, body, key)
        delivery = Delivery(tuple(headers_of(event_id, body, sent_at=sent_at, key=key).items()), body)
        Verifier(WebhookSettings(), [key]).check(delivery, now=datetime.fromtimestamp(sent_at, UTC))
