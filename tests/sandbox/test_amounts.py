"""Amounts, currencies and other fields of a create: what is stored unchanged, and what is refused."""

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

JSON = {"Content-Type": "application/json"}


def create(client: httpx.Client, members: str) -> httpx.Response:
    return client.post("/transactions", content=f"{{{members}}}".encode(), headers=JSON)


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


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(st.decimals("0.0001", "99999999999999.9999", places=4).map(lambda amount: f"{amount:f}"))
def test_random_amount_within_bounds_is_returned_exactly(shared_client: httpx.Client, token: str) -> None:
    assert f'"amount":{token},' in with_amount(shared_client, token).text


@pytest.mark.parametrize(
    "token",
    [
        *("0", "0.0", "0.0000", "-0", "-1", "1e3", "1E3", "1e400", "1.00e2", "0.00001", "1.00000", "100000000000000"),
        *("true", "null", "[1]"),
        *("9" * 5000, '"100"', '""', '{"value":1}'),
    ],
)
def test_amount_out_of_bounds_is_400_with_a_pointer(client: httpx.Client, token: str) -> None:
    reply = with_amount(client, token)

    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json()["errors"] == [
        {
            "pointer": "#/amount",
            "detail": "amount must be a number above 0, not a string, with at most 14 digits before the"
            " point, at most 4 after it, and no exponent.",
        }
    ]
    assert client.get("/transactions").json() == {"data": [], "has_more": False}


@pytest.mark.parametrize(
    "token",
    ["NaN", "Infinity", "-Infinity", "+1", "01", "1.", ".5", "1_000", "1,000", "0x10", "\u0661", "1\u0660", "--1"],
)
def test_amount_that_is_no_json_number_is_400(client: httpx.Client, token: str) -> None:
    reply = with_amount(client, token)

    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (400, "#")


@pytest.mark.parametrize("token", ['"usd"', '"US"', '"USDT"', '"USD\\n"', '"\uff35\uff33\uff24"', '""', "840", "null"])
def test_currency_other_than_three_capitals_is_400(client: httpx.Client, token: str) -> None:
    reply = create(client, f'"amount":1,"currency":{token}')

    assert reply.status_code == 400
    assert reply.json()["errors"] == [{"pointer": "#/currency", "detail": "currency must be three capital letters."}]


def test_body_with_several_flaws_names_them_all(client: httpx.Client) -> None:
    reply = create(client, '"id":"tx_1","status":"released","payer":7')

    assert reply.status_code == 400
    assert [error["pointer"] for error in reply.json()["errors"]] == [
        *("#/id", "#/status", "#/amount", "#/currency", "#/payer")
    ]


@pytest.mark.parametrize("name", ["id", "status", "created_at", "updated_at"])
def test_reserved_field_in_a_body_is_refused(client: httpx.Client, name: str) -> None:
    reply = create(client, f'"amount":1,"currency":"USD","{name}":"x"')

    assert reply.status_code == 400
    assert reply.json()["errors"] == [{"pointer": f"#/{name}", "detail": f"{name} is set by the service."}]


@pytest.mark.parametrize("name", ["payer", "payee"])
def test_create_for_an_unknown_user_is_400_and_stores_nothing(client: httpx.Client, name: str) -> None:
    reply = create(client, f'"amount":1,"currency":"USD","{name}":"usr_00000000"')

    assert reply.status_code == 400
    assert reply.json()["errors"] == [
        {"pointer": f"#/{name}", "detail": f"{name} must be one of usr_PAYER001, usr_PAYEE001."}
    ]
    assert client.get("/transactions").json()["data"] == []
