"""Records as lines: dotted names, the record's own order, nothing left out, numbers unchanged."""

import json

import pytest
from cli.replies import json_reply
from conftest import ServiceAndRun

from escrowctl.contract.json import Document, read_reply
from escrowctl.output.view import flatten


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b'{"id":"tx_1","amount":100.00}', (("id", "tx_1"), ("amount", "100.00"))),
        (b'{"z":1E+2,"a":{"y":true,"x":null}}', (("z", "1E+2"), ("a.y", "true"), ("a.x", ""))),
        (b'{"a":{"b":{"c":"deep"}}}', (("a.b.c", "deep"),)),
        (b'{"list":[1,{"a":"b"}],"none":[],"empty":{}}', (("list", '[1,{"a":"b"}]'), ("none", "[]"), ("empty", "{}"))),
        (
            b'{"a b":1,"Zo\xc3\xab":2,"$ref":3,"a-b/c":4}',
            (("a b", "1"), ("Zo\u00eb", "2"), ("$ref", "3"), ("a-b/c", "4")),
        ),
        (b"{}", (("value", "{}"),)),
        (b"12.50", (("value", "12.50"),)),
    ],
)
def test_a_record_is_flattened_in_its_own_order(body: bytes, lines: tuple[tuple[str, str], ...]) -> None:
    reply = read_reply(body)

    assert isinstance(reply, Document)
    assert tuple(flatten(reply.value)) == lines


def test_fields_below_a_long_name_are_shown_as_json() -> None:
    key = "K" * 20_000
    body = json.dumps({key: {str(number): number for number in range(2_000)}}, separators=(",", ":"))
    reply = read_reply(body.encode())

    assert isinstance(reply, Document)
    assert tuple(flatten(reply.value)) == ((key, body.removeprefix(f'{{"{key}":').removesuffix("}")),)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"status":"held","":{"status":"released"}}', ["status", '"".status']),
        (b'{"a.b":1,"a":{"b":2}}', ['"a.b"', "a.b"]),
        (b'{"a":{"":{"":1}},"a.":2}', ['a."".""', '"a."']),
        (b'{"\\"a\\"":1,"a":2}', ['"\\"a\\""', "a"]),
        (b'{"a\\u001b":1,"a\\\\u{1b}":2}', ['"a\\u001b"', '"a\\\\u{1b}"']),
        (b'{"status ":1," status":2,"status":3," ":4}', ['"status "', '" status"', "status", '" "']),
        (b'{"status\xe2\x80\x8b":1,"status\xef\xb8\x8f":2}', ['"status\\u200b"', '"status\\ufe0f"']),
        (b'{"\x7f":1}', ['"\\u007f"']),
    ],
)
def test_ambiguous_field_name_is_quoted(body: bytes, names: list[str]) -> None:
    reply = read_reply(body)

    assert isinstance(reply, Document)
    assert [name for name, _ in flatten(reply.value)] == names


def test_record_cannot_forge_a_field_in_a_pipe(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"x","status":"held","":{"status":"released"},"a\\tb":1}'))

    assert run("tx", "get", "x").out == 'id\tx\nstatus\theld\n"".status\treleased\n"a\\tb"\t1\n'
