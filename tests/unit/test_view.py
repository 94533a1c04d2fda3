"""Records as lines: dotted names, the record's own order, nothing left out, numbers as they stood."""

import pytest

from escrowctl.contract.reply import Document, read_reply
from escrowctl.output.view import flatten


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b'{"id":"tx_1","amount":100.00}', (("id", "tx_1"), ("amount", "100.00"))),
        (b'{"z":1E+2,"a":{"y":true,"x":null}}', (("z", "1E+2"), ("a.y", "true"), ("a.x", ""))),
        (b'{"a":{"b":{"c":"deep"}}}', (("a.b.c", "deep"),)),
        (b'{"list":[1,{"a":"b"}],"none":[],"empty":{}}', (("list", '[1,{"a":"b"}]'), ("none", "[]"), ("empty", "{}"))),
        (b'{"a":{},"b":""}', (("a", "{}"), ("b", ""))),
        (b"{}", (("value", "{}"),)),
        (b"[1,2]", (("value", "[1,2]"),)),
        (b'"text"', (("value", "text"),)),
        (b"null", (("value", ""),)),
        (b"12.50", (("value", "12.50"),)),
    ],
)
def test_a_record_is_flattened_in_its_own_order(body: bytes, lines: tuple[tuple[str, str], ...]) -> None:
    reply = read_reply(body)

    assert isinstance(reply, Document)
    assert flatten(reply.value) == lines
