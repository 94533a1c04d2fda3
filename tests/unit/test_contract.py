"""Facts of outside standards, compared with their sources."""

import pytest
from iso4217 import Currency

from escrowctl.client.http import Answer, Exchange
from escrowctl.contract.error_reply import find_failure
from escrowctl.contract.json import Document, read_reply
from escrowctl.contract.money import MINOR_DIGITS
from escrowctl.contract.operations import CREATE_TRANSACTION, OPERATIONS, RELEASE_TRANSACTION, Operation
from escrowctl.contract.record import find_known_fields, resolve_pointer, unwrap_record
from escrowctl.errors import Outcome
from escrowctl.output.plain import safe
from escrowctl.writes.outcome import SentRequest, judge_write


def test_currencies_are_those_of_iso_4217_with_a_minor_unit() -> None:
    listed = {currency.code: currency.exponent for currency in Currency if currency.exponent is not None}

    assert listed == MINOR_DIGITS


def test_the_operations_are_the_rows_of_the_interface() -> None:
    """INTERFACE.md section 4, and the two calls of which only the activity listing tells."""
    assert {(operation.method, operation.path, operation.provenance.value) for operation in OPERATIONS} == {
        ("POST", "/transactions", "published"),
        ("GET", "/transactions/{id}", "published"),
        ("PUT", "/transactions/{id}/release", "published"),
        ("GET", "/users/{id}", "published"),
        ("POST", "/webhooks", "published"),
        ("GET", "/webhooks", "published"),
        ("GET", "/transactions", "the service does not document it"),
        ("PUT", "/transactions/{id}", "the service does not document it"),
    }


REFUSED = {
    *(301, 307, 308, 400, 401, 402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 417),
    *(421, 422, 424, 425, 428, 429, 431, 451, 501),
}


@pytest.mark.parametrize("operation", [CREATE_TRANSACTION, RELEASE_TRANSACTION], ids=lambda operation: operation.name)
def test_every_status_has_a_class_and_others_are_unknown(operation: Operation) -> None:
    body = b'{"id":"tx_1"}'
    found = {
        status: judge_write(
            operation,
            Exchange(sent=True, answer=Answer(status, (), b"" if status == 204 else body)),
            sent=SentRequest(),
        ).outcome
        for status in range(200, 600)
    }

    # What a 202 made is to be read first.
    done = {200, 201, 203} | ({202, 204} if operation is RELEASE_TRANSACTION else set())
    expected = {
        status: Outcome.DONE if status in done else Outcome.REFUSED if status in REFUSED else Outcome.UNKNOWN
        for status in range(200, 600)
    }
    assert found == expected


@pytest.mark.parametrize(
    ("body", "located"),
    [
        (b'{"id":"tx_1","status":"held","amount":5,"currency":"USD"}', ("tx_1", "held", "5", "USD")),
        (b'{"data":{"id":17,"state":"X","amount":"5.00","currency":"USD"}}', ("17", "X", "5.00", "USD")),
        (b'{"transaction":{"transactionId":"a","amount":{"value":"5","currency":"EUR"}}}', ("a", None, "5", "EUR")),
        (b'{"only":{"transaction_id":"a"}}', ("a", None, None, None)),
        (b'{"uuid":"u","data":{"id":"inner"}}', ("u", None, None, None)),
        (b'{"success":true,"data":{"id":"tx_1"}}', ("tx_1", None, None, None)),
        (b'{"id":true,"amount":"five","status":3}', (None, "3", None, None)),
        (b"[]", (None, None, None, None)),
    ],
)
def test_usual_field_names_are_found_and_others_are_not(body: bytes, located: tuple[str | None, ...]) -> None:
    reply = read_reply(body)
    assert isinstance(reply, Document)

    found = find_known_fields(unwrap_record(reply.value, noun="transaction"), noun="transaction")

    assert (found.id, found.status, found.amount.text if found.amount else None, found.currency) == located


def test_pointer_is_resolved_by_rfc_6901() -> None:
    document = read_reply(b'{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8}')
    assert isinstance(document, Document)

    found = [resolve_pointer(document.value, pointer) for pointer in ("", "/foo/0", "/", "/a~1b", "/m~0n", "/foo/9")]

    assert found == [document.value, "bar", 0, 1, 8, None]


ERRORS = [
    *('{"success":false}', '{"isSuccess":"no"}', '{"succeeded":false}', '{"successful":0}', '{"ok":"false"}'),
    *('{"error":"x"}', '{"errors":[1]}', '{"error":true}', '{"error":{"code":0,"message":"no funds"}}'),
    *('{"error_code":"INSUFFICIENT_FUNDS"}', '{"errorCode":"E1"}', '{"Error-Message":"x"}', '{"errcode":40001}'),
    *('{"failure":{"why":"x"}}', '{"fault":"x"}', '{"exception":"x"}', '{"violations":[{"field":"amount"}]}'),
    *('{"type":"error"}', '{"object":" Error "}', '{"result":"failed"}', '{"outcome":"rejected"}'),
    *('{"status":"declined"}', '{"status":{"name":"failure"}}', '{"state":"FAILED"}', '{"status":"error","a":1}'),
    *('{"status":false}', '{"status":404}', '{"code":40001}', '{"title":"No","detail":"no funds"}'),
    *('{"error":204}', '{"error_code":231}', '{"error":{"code":204}}', '{"errors":[{"code":"210"}]}'),
    *('{"err-code":"E1"}', '{"status-code":402}'),
    *('{"message":"no funds"}', '"request failed"', '[{"error":"x"}]', "false"),
]
NO_ERRORS = [
    *('{"error":null,"errors":[],"success":true}', '{"error":{}}', '{"error":{"code":0,"message":"ok"}}'),
    *(
        '{"errorCode":0,"errcode":"00","errmsg":"ok"}',
        '{"code":200}',
        '{"code":"0"}',
        '{"response_code":10000}',
        '{"failure":false}',
    ),
    *('{"status":"held"}', '{"status":200}', '{"type":"escrow","object":"transaction"}', '{"result":{"x":1}}'),
    *('{"title":"Rent","detail":null}', '{"message":"created","id":"tx_1"}', '{"terror":"x"}', "null", "[]", "{}"),
]


@pytest.mark.parametrize(
    ("body", "is_error"), [*((body, True) for body in ERRORS), *((body, False) for body in NO_ERRORS)]
)
def test_a_reply_shaped_like_an_error_is_noticed(body: str, *, is_error: bool) -> None:
    reply = read_reply(body.encode())

    assert isinstance(reply, Document)
    assert (find_failure(reply.value) is not None) is is_error


def test_an_error_field_that_returns_what_was_sent_is_none() -> None:
    reply = read_reply(b'{"error_url":"https://shop.example/failed","type":"error"}')

    assert isinstance(reply, Document)
    assert find_failure(reply.value, sent_document=reply.value) is None


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[2J", r"\u{1b}[2J"),
        ("\x9b31m", r"\u{9b}31m"),
        ("a\u202eb\u2066c", r"a\u{202e}b\u{2066}c"),
        ("zero\u200bwidth\ufeff", r"zero\u{200b}width\u{feff}"),
        ("line\u2028\nend\r\t", r"line\u{2028}\u{a}end\u{d}\u{9}"),
        ("\ud800", r"\u{d800}"),
        ("\U000e0041", r"\u{e0041}"),
        ("[bold]na\u00efve \u4e2d[/bold]", "[bold]na\u00efve \u4e2d[/bold]"),
    ],
)
def test_control_characters_are_shown_by_code(hostile: str, harmless: str) -> None:
    assert safe(hostile) == harmless


@pytest.mark.parametrize(
    "code",
    [
        *("ad", "34f", "61c", "115f", "1160", "17b4", "17b5", "180b", "180c", "180d", "180e", "180f"),
        *("200b", "200c", "200d", "200e", "200f", "2028", "2029", "202a", "202e", "2060", "2064", "2066", "206f"),
        *("2800", "3164", "fe00", "fe0f", "feff", "ffa0", "fff9", "1bca0", "1d173"),
        *("e0001", "e0020", "e007f", "e0100", "e01ef"),
    ],
)
def test_invisible_character_is_shown_by_its_code(code: str) -> None:
    assert safe(f"tx_{chr(int(code, 16))}1") == f"tx_\\u{{{code}}}1"


@pytest.mark.parametrize("text", ["Zoe\u0308", "\u05e9\u05c1", "\u20ac 5", "\U0001f600"])
def test_letters_marks_and_emoji_are_unchanged(text: str) -> None:
    assert safe(text) == text
