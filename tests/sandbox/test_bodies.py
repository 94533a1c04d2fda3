"""The body of a create: what is stored unchanged, and what is refused with 400; none is a 500."""

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
        *(f'{{"amount":{token},"currency":"USD"}}'.encode() for token in ("NaN", "+1", "01", "1.", "1,000", "\u0661")),
    ],
    ids=lambda body: repr(body[:40]),
)
def test_body_that_is_no_strict_json_object_is_400(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/transactions", content=body, headers=JSON)

    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json()["errors"][0]["pointer"] == "#"
    assert client.get("/transactions").json()["data"] == []


@pytest.mark.parametrize(
    "value",
    [
        '{"rate":1.10,"big":1e400,"list":[-0,true,null,"\\u20ac"]}',
        *("[" * 31 + "]" * 31, '"\\ud83d\\ude00"', '"\\u0000"', "1" * 5000, "-0.0", "1E-400", "{}", '{"":""}'),
    ],
)
def test_unknown_field_with_any_json_is_returned_unchanged(client: httpx.Client, value: str) -> None:
    made = client.post("/transactions", content=f'{{"amount":1,"currency":"USD","x":{value}}}'.encode(), headers=JSON)

    assert made.status_code == 200
    assert f'"x":{value},' in made.text
    assert f'"x":{value},' in client.get(f"/transactions/{made.json(parse_int=str)['id']}").text
    assert f'"x":{value},' in client.get("/transactions").text


@pytest.mark.slow
@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@example(0, 100, b"\x00")
@given(st.integers(0, len(GOOD)), st.integers(0, 8), st.binary(max_size=4))
def test_damaged_body_is_never_a_500(shared_client: httpx.Client, at: int, cut: int, planted: bytes) -> None:
    body = GOOD[:at] + planted + GOOD[at + cut :]

    assert shared_client.post("/transactions", content=body, headers=JSON).status_code in {200, 400}


def create(client: httpx.Client, members: str) -> httpx.Response:
    return client.post("/transactions", content=f"{{{members}}}".encode(), headers=JSON)


def flaws(reply: httpx.Response) -> list[str]:
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    return [error["pointer"] for error in reply.json()["errors"]]


def with_amount(client: httpx.Client, token: str) -> httpx.Response:
    return create(client, f'"amount":{token},"currency":"USD"')


@pytest.mark.parametrize(
    "token", ["1", "100", "100.0", "100.00", "0.1", "0.0001", "1.1000", "12345678901234.1234", "99999999999999.9999"]
)
def test_amount_is_returned_digit_for_digit(client: httpx.Client, token: str) -> None:
    made = with_amount(client, token)

    assert f'"amount":{token},' in made.text
    path = f"/transactions/{made.json()['id']}"
    assert f'"amount":{token},' in client.get(path).text
    assert f'"amount":{token},' in client.put(f"{path}/release").text
    assert f'"amount":{token},' in client.get("/transactions").text


@pytest.mark.slow
@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(st.decimals("0.0001", "99999999999999.9999", places=4).map(lambda amount: f"{amount:f}"))
def test_random_amount_within_bounds_is_returned_exactly(shared_client: httpx.Client, token: str) -> None:
    assert f'"amount":{token},' in with_amount(shared_client, token).text


@pytest.mark.parametrize(
    "token",
    [
        *("0", "0.0000", "-1", "1e3", "1e400", "0.00001", "100000000000000", "9" * 5000),
        *("true", "null", '"100"', '{"value":1}'),
    ],
)
def test_amount_out_of_bounds_is_400_with_a_pointer(client: httpx.Client, token: str) -> None:
    assert flaws(with_amount(client, token)) == ["#/amount"]
    assert client.get("/transactions").json() == {"data": [], "has_more": False}


@pytest.mark.parametrize("token", ['"usd"', '"USDT"', '"USD\\n"', '"\uff35\uff33\uff24"', "840"])
def test_currency_other_than_three_capitals_is_400(client: httpx.Client, token: str) -> None:
    assert flaws(create(client, f'"amount":1,"currency":{token}')) == ["#/currency"]


def test_body_with_several_flaws_names_them_all(client: httpx.Client) -> None:
    reply = create(client, '"id":"tx_1","status":"released","created_at":"x","updated_at":"x","payer":7')

    named = {"#/id", "#/status", "#/created_at", "#/updated_at", "#/amount", "#/currency", "#/payer"}
    assert set(flaws(reply)) == named


@pytest.mark.parametrize("name", ["payer", "payee"])
def test_create_for_an_unknown_user_is_400_and_stores_nothing(client: httpx.Client, name: str) -> None:
    reply = create(client, f'"amount":1,"currency":"USD","{name}":"usr_00000000"')

    assert flaws(reply) == [f"#/{name}"]
    assert client.get("/transactions").json()["data"] == []
