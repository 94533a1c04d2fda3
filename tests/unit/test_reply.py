"""The strict reader: every broken reply is a typed result, and values are read exactly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escrowctl.contract.json import MAX_VALUES, Defect, Document, Number, UnreadableReply, encode, normalise, read_reply


@pytest.mark.parametrize(
    ("body", "defect"),
    [
        (b"", Defect.EMPTY),
        # Spaces to Python, and not to JSON (RFC 8259 section 2).
        (b"\x1f", Defect.NOT_JSON),
        ("\u00a0\u2028".encode(), Defect.NOT_JSON),
        (b'{"id": "tx_1"', Defect.CUT_SHORT),
        (b"[1, 2", Defect.CUT_SHORT),
        (b"<!doctype html><p>busy", Defect.HTML),
        (b'{"id": 1} {"id": 2}', Defect.NOT_JSON),
        (b'{"id": 01}', Defect.NOT_JSON),
        (b'{"id": "\xff\xfe"}', Defect.NOT_UTF8),
        ('{"id": 1}'.encode("utf-16"), Defect.NOT_UTF8),
        (b'\xef\xbb\xbf{"id": 1}', Defect.BYTE_ORDER_MARK),
        (b'{"amount": NaN}', Defect.NOT_A_NUMBER),
        (b'{"id": 1, "id": 2}', Defect.DUPLICATE_KEY),
        (b'[{"a": {"b": 1, "b": 1}}]', Defect.DUPLICATE_KEY),
        (b'{"amount": ' + b"9" * 5000 + b"}", Defect.NUMBER_TOO_LONG),
        (b'{"amount": 1e99999999999999999999}', Defect.NUMBER_TOO_LONG),
        (b"[" * 100_000 + b"]" * 100_000, Defect.TOO_DEEP),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, Defect.TOO_DEEP),
        (b"[" * 34 + b"]" * 34, Defect.TOO_DEEP),
        (b'{"memo": "\\ud800"}', Defect.LONE_SURROGATE),
        (b'{"\\udc00": 1}', Defect.LONE_SURROGATE),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else value.name,
)
def test_a_broken_reply_is_a_typed_result(body: bytes, defect: Defect) -> None:
    reply = read_reply(body)

    assert isinstance(reply, UnreadableReply)
    assert reply.defect is defect


@pytest.mark.parametrize("token", ["100", "100.00", "1E+2", "1e2", "-0", "0.10", "12345678901234567890.123456789"])
def test_a_number_stays_the_token_it_was(token: str) -> None:
    reply = read_reply(f'{{"amount": {token}}}'.encode())

    assert isinstance(reply, Document)
    assert encode(reply.value) == f'{{"amount":{token}}}'


def test_characters_of_two_escapes_are_read() -> None:
    assert read_reply(b'"\\ud83d\\ude00"') == Document("\U0001f600")


def test_thirty_two_levels_are_read() -> None:
    assert isinstance(read_reply(b"[" * 32 + b"]" * 32), Document)


@pytest.mark.parametrize("one", [b'{"a":' * 29 + b"1" + b"}" * 29, b"[" * 30 + b"]" * 30])
def test_nested_values_beyond_the_limit_are_not_read(one: bytes) -> None:
    reply = read_reply(b"[" + b",".join([one] * (MAX_VALUES // 29 + 1)) + b"]")

    assert isinstance(reply, UnreadableReply)
    assert reply.defect is Defect.TOO_MANY


@pytest.mark.slow
def test_as_many_values_as_the_limit_are_read() -> None:
    most = b"[" + b",".join([b"[]"] * (MAX_VALUES - 1)) + b"]"

    assert isinstance(read_reply(most), Document)
    assert isinstance(read_reply(most.replace(b"[]", b"[[]]", 1)), UnreadableReply)


@pytest.mark.slow
@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_at_all_make_the_reader_raise(body: bytes) -> None:
    assert isinstance(read_reply(body), Document | UnreadableReply)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers().map(str).map(Number) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u00fc\x00", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=300, derandomize=True, deadline=None)
@given(_JSON)
def test_written_json_is_read_back(value: object) -> None:
    text = encode(value)  # type: ignore[arg-type] # any JSON value

    assert text.isascii()
    assert read_reply(text.encode()) == Document(value)  # type: ignore[arg-type] # as above


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"amount":100,"currency":"USD"}', b'{"currency":"USD","amount":100.00}'),
        (b"[1e2, 0.50]", b"[100, 0.5]"),
        (b"0.0", b"-0"),
    ],
)
def test_equal_bodies_have_one_fingerprint(one: bytes, other: bytes) -> None:
    first, second = read_reply(one), read_reply(other)

    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert encode(normalise(first.value)) == encode(normalise(second.value))


def test_fingerprint_keeps_every_digit() -> None:
    one, other = (
        Number("1234567890123456789012345678901234567890.1"),
        Number("1234567890123456789012345678901234567890.2"),
    )

    assert encode(normalise(one)) != encode(normalise(other))
