"""Caps: counted per operation, currency and UTC day, reserved with the intent, and never freed by a clock."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Run
from wire_server import hang_up

from cli.conftest import DAY, Profile
from cli.replies import HELD, WEBHOOK, create, holding, in_turn, json_reply

EVE = datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)


def test_operations_and_currencies_are_counted_apart(profile: Profile, run: Run) -> None:
    profile('caps.USD = "100"', 'caps.EUR = "100"')

    lines = (create("100"), create("100", "EUR"), ("tx", "release", "tx_1", "--yes"), create("1"), create("1", "EUR"))

    # A webhook moves no money.
    assert [run(*line).code for line in (*lines, WEBHOOK)] == [0, 0, 0, 5, 5, 0]


def test_a_release_counts_with_the_amount_that_its_record_has(profile: Profile, run: Run) -> None:
    server = profile('caps.USD = "99.99"')

    result = run("tx", "release", "tx_1", "--yes", "--json")

    assert (result.code, server.writes, result.error["code"]) == (5, [], "capped")


def test_write_of_unknown_amount_is_refused_under_caps(profile: Profile, run: Run) -> None:
    server = profile('caps.USD = "100"', behave=json_reply(b'{"id":"tx_1","status":"held"}'))

    release = run("tx", "release", "tx_1", "--yes", "--json")
    foreign = run("api", "POST", "/refunds", "--data", '{"amount":1,"currency":"USD"}', "--yes", "--json")

    assert ([release.code, foreign.code], server.writes) == ([5, 5], [])


def test_update_counts_only_when_it_sets_an_amount(profile: Profile, run: Run) -> None:
    server = profile('caps.USD = "100"')

    codes = [
        run("tx", "update", "tx_1", "--data", data, "--yes").code
        for data in ('{"note":"x"}', '{"amount":100}', '{"amount":0.01}')
    ]

    assert (codes, len(server.writes)) == ([0, 0, 5], 2)


@pytest.mark.parametrize(
    "data", ['{"amount":-1000000}', '{"amount":0}', '{"data":{"amount":9}}', '{"Amount":9}', '{"amount":"9e5"}']
)
def test_update_to_an_uncountable_amount_is_refused_under_caps(profile: Profile, run: Run, data: str) -> None:
    server = profile('caps.USD = "100"')

    result = run("tx", "update", "tx_1", "--data", data, "--yes", "--json")

    assert (result.code, server.writes, result.error["code"]) == (5, [], "capped")


def test_refused_write_without_an_amount_makes_up_for_no_other(profile: Profile, run: Run) -> None:
    replies = {"GET": json_reply(b'{"status":"held"}'), "PUT": json_reply(b"", "401 No")}
    server = profile(behave=lambda seen, connection: replies[seen.method](seen, connection))
    refused = ("tx", "release", "tx_1", "--yes", "--idempotency-key", "k-1")
    assert run(*refused, now=lambda: DAY).code == 4
    unread, replies["PUT"] = replies["GET"], json_reply(b"")
    replies["GET"] = json_reply(b'{"status":"held","amount":60,"currency":"EUR"}')
    assert run("config", "set", "caps.EUR", "200").code == 0
    counted = run("tx", "release", "tx_2", "--yes", now=lambda: DAY).code
    assert run("config", "unset", "caps.EUR").code == 0
    replies["GET"] = unread
    assert run("tx", "release", "tx_3", "--yes", now=lambda: DAY).code == 0
    replies["GET"] = json_reply(b'{"status":"held","amount":60,"currency":"EUR"}')
    assert run("config", "set", "caps.EUR", "200").code == 0

    again = run(*refused, now=lambda: DAY)

    assert (counted, again.code, len(server.writes)) == (0, 5, 3)


def test_write_resent_with_the_clock_set_back_counts(profile: Profile, run: Run) -> None:
    profile('caps.USD = "100"', behave=in_turn(hang_up, holding()))
    resend = ("journal", "resolve", "j1", "--resend", "--yes", "--allow-unreadable", "--reason", "desk")

    codes = [run(*create("50"), now=lambda: DAY).code, run(*resend, now=lambda: EVE).code]

    assert [*codes, run(*create("1"), now=lambda: DAY).code] == [12, 0, 5]


def test_a_retry_of_one_write_counts_once(profile: Profile, run: Run) -> None:
    throttled_once = in_turn(json_reply(b"", "429 Later"), json_reply(HELD))
    server = profile('caps.USD = "100"', "retry_throttled = true", behave=throttled_once)

    assert run(*create("100")).code == 0
    assert len(server.writes) == 2


def test_imported_write_counts_as_often_as_it_was_sent(profile: Profile, run: Run, home: Path, tmp_path: Path) -> None:
    server = profile('caps.USD = "120"', behave=hang_up)
    resend = ("journal", "resolve", "j1", "--resend", "--yes", "--allow-unreadable", "--reason", "desk")
    other, exported = tmp_path / "other", tmp_path / "export.jsonl"
    assert [run(*create("60")).code, run(*resend).code] == [12, 12]
    exported.write_text(run("journal", "export").out)
    other.mkdir(mode=0o700)
    for name in ("config.toml", "a.key"):
        shutil.copy2(home / name, other)
    there = {"ESCROWCTL_HOME": str(other)}

    codes = [run(*line, environ=there).code for line in (("journal", "import", str(exported)), create("1"))]

    assert (codes, len(server.writes)) == ([0, 5], 2)
    assert run("journal", "verify", environ=there).code == 0
