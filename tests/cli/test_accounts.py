"""Two accounts at one origin: refusals hold across their keys, a claim of success holds for one of them only."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Result, Run, Serve
from wire_server import Behave, WireServer, hang_up

from cli.older_export import write_older_export
from cli.replies import CREATE, HELD, RELEASE, json_reply, writes_meet

EU, US = "sk_live_of_the_eu_account", "sk_live_of_the_us_account"
KEYED = (*CREATE, "--idempotency-key", "payroll-2026-11")
RunWithKey = Callable[..., Result]


@pytest.fixture
def service_and_run_with_key(serve: Serve, run: Run, write_config: Callable[[str], Path]) -> Any:
    """Start a service, and return it with what runs a line under a key: `run_with_key(EU, *words, account="eu")`."""

    def start(behave: Behave) -> tuple[WireServer, RunWithKey]:
        server = serve(behave)

        def run_with_key(key: str, *words: str, account: str | None = None) -> Result:
            named = f'account = "{account}"\n' if account else ""
            write_config(f'[profiles.p]\nbase_url = "{server.base_url}"\n{named}')
            environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_PROFILE": "p", "ESCROWCTL_API_KEY": key}
            return run(*words, environ=environ)

        return server, run_with_key

    return start


def test_idempotency_key_of_another_account_is_refused(service_and_run_with_key: Any) -> None:
    server, line = service_and_run_with_key(json_reply(HELD))
    assert line(EU, *KEYED).code == 0

    other = line(US, *KEYED, "--json")

    assert (other.code, other.out, other.error["code"]) == (7, "", "key_reused")
    assert (other.error["outcome"], len(server.writes)) == ("not_sent", 1)
    assert "escrowctl tx get tx_1" in other.error["hint"]


def test_idempotency_key_is_replayed_after_the_api_key_rotated(service_and_run_with_key: Any) -> None:
    server, line = service_and_run_with_key(json_reply(HELD))
    assert line(EU, *KEYED, account="eu").code == 0

    again = line("sk_live_of_the_eu_account_rotated", *KEYED, "--json", account="eu")

    assert (again.code, again.json["id"], len(server.writes)) == (0, "tx_1", 1)


def test_one_key_under_two_account_names_is_one_account(service_and_run_with_key: Any) -> None:
    server, line = service_and_run_with_key(writes_meet(json_reply(HELD)))

    codes = [line(EU, *RELEASE, account=name).code for name in ("eu", "us")]

    assert (codes, len(server.writes)) == ([0, 7], 1)


def test_unknown_is_not_resolved_with_another_key(service_and_run_with_key: Any) -> None:
    server, line = service_and_run_with_key(writes_meet(hang_up, reads=json_reply(HELD)))
    assert line(EU, *RELEASE).code == 12
    decision = ("journal", "resolve", "j1", "--not-applied", "--reason", "desk")
    reads = len(server.seen)

    refused = [line(US, "journal", "resolve", "j1").code, line(US, *decision).code]
    decided = line(US, *decision, "--allow-unreadable").code

    assert (refused, decided, len(server.seen)) == ([2, 2], 0, reads)


def test_entries_of_an_older_version_refuse_and_claim_nothing(service_and_run_with_key: Any, tmp_path: Path) -> None:
    server, line = service_and_run_with_key(json_reply(HELD))
    export = write_older_export(tmp_path / "older.jsonl", base_url=server.base_url)
    assert line(EU, "journal", "import", str(export)).code == 0
    first = line(EU, "journal", "show", "j1", "--json").json

    seven_euro = ("tx", "create", "--amount", "7", "--currency", "EUR")
    replayed = line(EU, *seven_euro, "--idempotency-key", first["idempotency_key"], "--json")
    skipped = line(EU, *RELEASE, "--skip-released", "--json")

    assert (replayed.code, replayed.error["code"]) == (7, "key_reused")
    assert f"escrowctl tx get {first['id']}" in replayed.error["hint"]
    assert (skipped.code, skipped.error["code"], server.writes) == (7, "conflict", [])


def test_key_is_not_readable_from_the_journal(service_and_run_with_key: Any, home: Path) -> None:
    _, line = service_and_run_with_key(json_reply(HELD))
    line(EU, *KEYED, account="eu")

    with sqlite3.connect(home / "state" / "journal.db") as database:
        account, fingerprint = database.execute(
            "SELECT facts ->> 'account', facts ->> 'key_fingerprint' FROM records"
        ).fetchone()

    salt, _, digest = fingerprint.partition(":")
    assert (account, len(salt), len(digest)) == ("eu", 16, 8)
    assert EU.encode() not in (home / "state" / "journal.db").read_bytes()
