"""`webhook verify`: what proves that an event comes from the service, and what does not."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Result, Run
from webhook_sender import KEY, OTHER_SECRET, SECRET, body_of, headers_of, sign

from cli.conftest import Profile
from cli.replies import WEBHOOK, json_reply

BODY = body_of(1)
AT = int(NOW.timestamp())
HEADERS = headers_of("msg_1", BODY, sent_at=AT)

VECTOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_AT = 1614265330
VECTOR_BODY = b'{"test": 2432232314}'
VECTOR_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(VECTOR_AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
"""The fixed example in the tests of the specification's own libraries."""

Verify = Callable[..., Result]


def options_of(headers: dict[str, str]) -> list[str]:
    return [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]


@pytest.fixture
def verify(run: Run, tmp_path: Path) -> Verify:
    """Verify a body with headers, at the time `NOW`, with `SECRET` in the variable."""
    path = tmp_path / "body"

    def verify_there(
        body: bytes, headers: dict[str, str], *words: str, secret: str | None = SECRET, **given: Any
    ) -> Result:
        path.write_bytes(body)
        environ = {"ESCROWCTL_WEBHOOK_SECRET": secret} if secret is not None else {}
        given.setdefault("now", lambda: NOW)
        return run("webhook", "verify", str(path), *options_of(headers), *words, environ=environ, **given)

    return verify_there


def test_signed_event_is_verified_and_described(verify: Verify) -> None:
    result = verify(BODY, HEADERS, "--json")

    assert (result.code, result.err) == (0, "")
    facts = {"id": "msg_1", "type": "transaction.released", "resource": "tx_1", "status": "released", "verified": True}
    assert result.json.items() >= facts.items()


def test_vector_of_the_specification_is_verified(verify: Verify) -> None:
    then = partial(datetime.fromtimestamp, VECTOR_AT + 299, UTC)

    assert verify(VECTOR_BODY, VECTOR_HEADERS, secret=VECTOR_SECRET, now=then).code == 0
    assert verify(VECTOR_BODY + b" ", VECTOR_HEADERS, secret=VECTOR_SECRET, now=then).code == 14


@pytest.mark.parametrize(
    ("seconds", "words", "code"),
    [(300, (), 0), (-300, (), 0), (301, (), 14), (-301, (), 14), (1, ("--tolerance", "0"), 14)],
)
def test_timestamp_may_differ_by_the_tolerance_both_ways(
    seconds: int, words: tuple[str, ...], code: int, verify: Verify
) -> None:
    result = verify(BODY, headers_of("msg_1", BODY, sent_at=AT - seconds), *words, "--json")

    assert result.code == code
    assert code == 0 or (result.error["code"], result.error["id"]) == ("bad_signature", "msg_1")


MALFORMED: dict[str, dict[str, str | None]] = {
    "no signature": {"webhook-signature": None},
    "no id": {"webhook-id": None},
    "no timestamp": {"webhook-timestamp": None},
    "another version": {"webhook-signature": HEADERS["webhook-signature"].replace("v1", "v2")},
    "no padding": {"webhook-signature": HEADERS["webhook-signature"].rstrip("=")},
    "not ASCII": {"webhook-signature": "v1,größe"},
    "time with a fraction": {"webhook-timestamp": f"{AT}.0"},
    "time in other digits": {"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"},
    "huge time": {"webhook-timestamp": "9" * 40},
    "id with a space": {"webhook-id": "msg 1"},
    "long id": {"webhook-id": "m" * 257},
    "another id": {"webhook-id": "msg_2"},
    "signature of another secret": {"webhook-signature": sign("msg_1", AT, BODY, KEY[::-1])},
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED)
def test_malformed_event_ends_with_14(changes: dict[str, str | None], verify: Verify) -> None:
    headers = {name: value for name, value in (HEADERS | changes).items() if value is not None}

    result = verify(BODY, headers)

    assert (result.code, result.out) == (14, "")


@pytest.mark.parametrize(
    ("event_id", "code"), [(f"a.{AT}", 14), (f"a.{AT}.b", 14), ("msg.1", 0), (f"{AT}.a", 0), (f"a.x{AT}", 0)]
)
def test_id_that_moves_the_timestamp_is_refused(event_id: str, code: int, verify: Verify) -> None:
    assert verify(BODY, headers_of(event_id, BODY, sent_at=AT)).code == code


def test_header_given_twice_or_a_body_that_is_no_text_is_malformed(verify: Verify) -> None:
    body = b"\xff" + BODY

    assert verify(BODY, HEADERS, "-H", f"Webhook-Id: {HEADERS['webhook-id']}").code == 14
    assert verify(body, headers_of("msg_1", body, sent_at=AT)).code == 14


def test_any_secret_and_any_signature_may_match(verify: Verify) -> None:
    both = {**HEADERS, "webhook-signature": f"v1,AAAA v2,BBBB {HEADERS['webhook-signature']}"}

    assert [verify(BODY, both, secret=text).code for text in (f"{OTHER_SECRET} {SECRET}", OTHER_SECRET)] == [0, 14]


@pytest.mark.parametrize(
    ("secret", "code"),
    [
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "bad_config"),
        ("whsec_größe", "bad_config"),
        ("abc", "bad_config"),
        (None, "key_missing"),
    ],
)
def test_unusable_secret_is_refused_and_not_quoted(secret: str | None, code: str, verify: Verify) -> None:
    result = verify(BODY, HEADERS, "--json", secret=secret)

    assert result.error["code"] == code
    assert secret in (None, "abc") or secret not in result.err


def test_secret_comes_from_file_then_variable(verify: Verify, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)

    assert verify(BODY, HEADERS, "--secret-file", str(path), secret=OTHER_SECRET).code == 0
    path.chmod(0o644)
    assert verify(BODY, HEADERS, "--secret-file", str(path)).code == 2


def test_secret_of_a_registered_endpoint_is_used_for_its_service(profile: Profile, verify: Verify, run: Run) -> None:
    made = b'{"id":"wh_3","url":"https://hooks.example.net/x","secret":"%s"}' % SECRET.encode()
    profile("", behave=json_reply(made, "201 Created"))
    run("-p", "a", *WEBHOOK)

    codes = [verify(BODY, HEADERS, *words, secret=None).code for words in (("-p", "a"), ("--sandbox",))]

    assert codes == [0, 4]


def test_stored_value_that_is_no_secret_is_not_used(profile: Profile, verify: Verify, run: Run) -> None:
    profile("", behave=json_reply(b'{"id":"wh_3","secret":"too short"}', "201 Created"))
    run("-p", "a", *WEBHOOK)

    result = verify(BODY, HEADERS, "-p", "a", secret=None)

    assert (result.code, "too short" in result.err) == (4, False)


def test_secret_is_asked_for_at_a_terminal(verify: Verify) -> None:
    result = verify(BODY, HEADERS, secret=None, stdin=SECRET + "\n", terminal=True)

    assert (result.code, SECRET in result.out + result.err) == (0, False)


def test_body_is_read_from_standard_input(run: Run) -> None:
    given: dict[str, Any] = {"environ": {"ESCROWCTL_WEBHOOK_SECRET": SECRET}, "now": lambda: NOW}

    result = run("webhook", "verify", "-", *options_of(HEADERS), stdin=BODY.decode(), **given)

    assert result.code == 0


@pytest.mark.parametrize(
    "words",
    [(), ("FILE", "--event", "msg_1"), ("FILE", "-H", "nothing"), ("FILE", "--tolerance", "nan"), ("/",)],
    ids=str,
)
def test_line_of_verify_that_cannot_be_meant_is_refused(words: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(BODY)

    assert run("webhook", "verify", *(str(path) if word == "FILE" else word for word in words)).code == 2


HMAC = "webhook.scheme = 'hmac-sha256'\nwebhook.signature_header = 'X-Signature'"
DIGEST = hmac.new(b"a_secret_of_text", BODY, hashlib.sha256).digest()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (DIGEST.hex(), 0),
        (f"sha256={DIGEST.hex().upper()}", 0),
        (base64.b64encode(DIGEST).decode(), 0),
        (DIGEST.hex()[:-1] + "g", 14),
        (DIGEST.hex()[:-2], 14),
        ("", 14),
    ],
)
def test_hmac_of_the_body_in_one_header(value: str, code: int, profile: Profile, verify: Verify) -> None:
    profile(HMAC)

    assert verify(BODY, {"x-signature": value}, "-p", "a", secret="a_secret_of_text").code == code


def test_scheme_that_cannot_verify_is_reported(profile: Profile, verify: Verify) -> None:
    profile("webhook.scheme = 'none'")
    unsigned = verify(BODY, HEADERS, "-p", "a", "--json")
    profile("webhook.scheme = 'hmac-sha256'")
    nameless = verify(BODY, HEADERS, "-p", "a", "--json", secret="a_secret_of_text")

    assert (unsigned.code, unsigned.error["code"]) == (14, "bad_signature")
    assert (nameless.code, nameless.error["code"]) == (2, "bad_config")
