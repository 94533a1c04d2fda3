"""Bodies that are not valid JSON are 400; none is a 500."""

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

JSON = {"Content-Type": "application/json"}
GOOD = b'{"amount":1,"currency":"USD","metadata":{"a":[1,2.50,"x",null]}}'


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b"\xef\xbb\xbf" + GOOD, GOOD.decode().encode("utf-16"), b"{'amount':1}"),
        *(
            b'{"amount":1,"currency":"USD",' + rest
            for rest in (b"}", b'"x":"\xff"}', b'"x":"\\ud800"}', b'"x":[-Infinity]}', b'"x":"\n"}', b'"x":1}{}')
        ),
        *(b'{"amount":1,"\\u0061mount":2,"currency":"USD"}', b'{"amount":1,"currency":"USD","x":{"a":1,"a":1}}'),
        b'{"amount":1,"currency":"USD","x":' + b"[" * 32 + b"]" * 32 + b"}",
        *(b"[" * 1024 * 1024, b'{"a":' * 200_000),
    ],
    ids=lambda body: repr(body[:40]),
)
def test_body_that_is_no_strict_json_object_is_400(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/transactions", content=body, headers=JSON)

    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json()["errors"][0]["pointer"] == "#"
    assert client.get("/transactions").json()["data"] == []


@pytest.mark.parametrize(
    "value", ["[" * 31 + "]" * 31, '"\\ud83d\\ude00"', '"\\u0000"', "1" * 5000, "-0.0", "1E-400", "{}", '{"":""}']
)
def test_unknown_field_with_any_json_is_returned_unchanged(client: httpx.Client, value: str) -> None:
    made = client.post("/transactions", content=f'{{"amount":1,"currency":"USD","x":{value}}}'.encode(), headers=JSON)

    assert made.status_code == 200
    assert f'"x":{value},' in made.text
    assert f'"x":{value},' in client.get("/transactions").text


@pytest.mark.full
@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@example(0, 100, b"\x00")
@given(st.integers(0, len(GOOD)), st.integers(0, 8), st.binary(max_size=4))
def test_damaged_body_is_never_a_500(shared_client: httpx.Client, at: int, cut: int, planted: bytes) -> None:
    body = GOOD[:at] + planted + GOOD[at + cut :]

    assert shared_client.post("/transactions", content=body, headers=JSON).status_code in {200, 400}
