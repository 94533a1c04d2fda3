"""`doctor --tx`: which fields hold id, status, amount and currency, and what `--save` stores."""

import socket

import pytest
from conftest import Run
from wire_server import Behave, Seen, by_method, http_reply

from cli.conftest import Profile
from cli.doctor_checks import check, checks, failed
from cli.replies import CREATE, json_reply

ODD = (
    b'{"escrowNo":"A-10977","escrowState":"AWAITING_DEPOSIT","phase":"OPEN",'
    b'"value":{"amt":"100.00","ccy":"USD"},"fee":{"amt":100,"ccy":"USD"}}'
)
FIELDS = ["id", "status", "amount", "currency"]
DOCTOR = ("doctor", "--tx", "A-10977")


def always(record: bytes, *, released: bytes | None = None) -> Behave:
    """Return a service that answers everything with this record, from a release on with another."""
    answers = {"PUT": released or record, "GET": record}

    def put(_seen: Seen, connection: socket.socket) -> None:
        answers["GET"] = answers["PUT"]
        connection.sendall(http_reply("200 OK", answers["PUT"]))

    return by_method(
        GET=lambda _seen, connection: connection.sendall(http_reply("200 OK", answers["GET"])),
        POST=json_reply(record),
        PUT=put,
    )


def pointers(run: Run) -> dict[str, str | None]:
    """Return the reply's pointers in the profile."""
    settings = {one["setting"]: one["value"] for one in run("config", "list", "--json").json}
    return {name: found for name in FIELDS if (found := settings[f"reply.{name}"])}


def test_unknown_names_are_found_saved_and_then_used(profile: Profile, run: Run) -> None:
    server = profile(behave=always(ODD, released=ODD.replace(b"AWAITING_DEPOSIT", b"PAID")))
    assert run(*CREATE).code == 12

    first = run(*DOCTOR, "--save")

    assert first.code == 0
    assert [checks(first)[name] for name in FIELDS] == ["found", *["unclear"] * 3]
    assert pointers(run) == {"id": "/escrowNo"}
    assert run("journal", "resolve", "j1").code == 0

    second = run(*DOCTOR, "--save", "--json")

    assert second.code == 0
    assert [checks(second)[name] for name in FIELDS] == ["ok", "unclear", "found", "found"]
    assert check(second, "status")["hint"].endswith("escrowctl config set reply.status /escrowState")
    assert pointers(run) == {"id": "/escrowNo", "amount": "/value/amt", "currency": "/value/ccy"}

    expected = ("--expect-amount", "100", "--expect-currency", "USD")
    assert run("tx", "release", "A-10977", "--yes", "--expect-amount", "99").code == 3
    assert run("tx", "release", "A-10977", "--yes", *expected).code in (0, 16)
    assert [seen.method for seen in server.writes] == ["POST", "PUT"]


def test_pointers_are_those_that_the_next_reading_follows(profile: Profile, run: Run) -> None:
    profile(
        'reply.id = "/no"', behave=always(b'{"no":"A-10977","data":{"state":"held","amt":100,"ccy":"USD"},"page":1}')
    )
    assert run(*CREATE).code == 0

    result = run(*DOCTOR, "--save")

    assert (result.code, pointers(run)["amount"]) == (0, "/data/amt")
    found = run("tx", "get", "A-10977", "--fields", "amount,currency", "--json")
    assert found.json == {"amount": 100, "currency": "USD"}


def test_pointer_that_a_reading_would_follow_elsewhere_is_not_saved(profile: Profile, run: Run) -> None:
    profile(behave=always(b'{"meta":{"ref":"A-10977"},"data":{"meta":{"ref":"B-1"},"status":"held"}}'))

    result = run(*DOCTOR, "--save")

    assert (checks(result)["id"], pointers(run)) == ("unclear", {})


@pytest.mark.parametrize(
    ("record", "amount"),
    [
        pytest.param(b'{"id":"A-10977","total":100,"sum":100}', "unclear", id="two that are equal"),
        pytest.param(b'{"id":"A-10977","total":10000,"version":100}', "unclear", id="an equal one of another name"),
        pytest.param(b'{"id":"A-10977","worth":10000}', "unclear", id="none that is equal"),
        pytest.param(b'{"id":"A-10977","amount":10000}', "warning", id="another one under the usual name"),
    ],
)
def test_amount_in_doubt_is_not_saved(record: bytes, amount: str, profile: Profile, run: Run) -> None:
    profile(behave=always(record))
    run(*CREATE)

    result = run(*DOCTOR, "--save")

    assert (result.code, checks(result)["amount"], pointers(run)) == (0, amount, {})


def test_amount_that_another_service_was_sent_proves_nothing(profile: Profile, run: Run) -> None:
    profile(behave=always(ODD.replace(b"escrowNo", b"id")))
    run(*CREATE)
    profile(behave=always(ODD.replace(b"escrowNo", b"id")))

    assert checks(run(*DOCTOR))["amount"] == "unclear"


def test_pointer_that_leads_nowhere_fails(profile: Profile, run: Run) -> None:
    profile('reply.id = "/number"', 'reply.status = "/gone"', behave=always(ODD))

    result = run(*DOCTOR, "--json")

    assert (result.code, failed(result)) == (16, ["id", "status"])
    assert check(result, "id")["hint"] == "escrowctl config set reply.id /escrowNo"


def test_record_of_another_id_fails(profile: Profile, run: Run) -> None:
    profile(behave=always(b'{"id":"tx_9","status":"held","amount":1,"currency":"USD"}'))

    result = run(*DOCTOR, "--save")

    assert (result.code, failed(result), pointers(run)) == (16, ["id"], {})
