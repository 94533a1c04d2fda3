"""A store of an earlier version opens, loses nothing, and gets the new tables."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from escrowctl.sandbox import schema
from escrowctl.sandbox.ledger import Balance
from escrowctl.sandbox.service import Sandbox, open_sandbox
from escrowctl.sandbox.store import open_store
from sandbox.conftest import balances

STORES = Path(__file__).with_name("stores")

Now = Callable[[], datetime]
Connect = Callable[[Sandbox], httpx.Client]


def restore(folder: Path, version: int) -> Path:
    """Make a store from the dump of a version, and return its path."""
    folder.mkdir(mode=0o700, parents=True)
    path = folder / "sandbox.db"
    path.touch(mode=0o600)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / f"version_{version}.sql").read_text())
    return path


@pytest.fixture
def old_store(folder: Path) -> Path:
    """The path of a store of version 1."""
    return restore(folder, 1)


def look(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_store_of_version_1_keeps_every_record(old_store: Path, now: Now, connect: Connect) -> None:
    sandbox = open_sandbox(old_store.parent, now=now)

    listed = connect(sandbox).get("/transactions").text

    assert (sandbox.identity, sandbox.key) == ("sbx_DCMPK04R", "sk_sandbox_000102030405060708090a0b0c0d0e0f")
    assert listed == (
        '{"data":['
        '{"id":"tx_90A1B2C3","status":"released","amount":99999999999999.9999,"currency":"EUR",'
        '"payer":"usr_PAYER001","payee":"usr_PAYEE001",'
        '"created_at":"2026-11-21T03:12:46.000Z","updated_at":"2026-11-21T03:12:47.000Z"},'
        '{"id":"tx_7K2M9QHD","status":"held","amount":100.00,"currency":"USD",'
        '"payer":"usr_PAYER001","payee":"usr_PAYEE001","reference":"A-1","metadata":{"rate":1.10},'
        '"created_at":"2026-11-21T03:12:45.000Z","updated_at":"2026-11-21T03:12:45.000Z"}'
        '],"has_more":false}'
    )
    assert balances(sandbox) == (
        Balance("EUR", total=0, hold=0, held=0),
        Balance("USD", total=0, hold=1_000_000, held=1_000_000),
    )
    sandbox.close()


def test_store_of_version_1_gains_webhooks_and_still_works(old_store: Path, now: Now, connect: Connect) -> None:
    sandbox = open_sandbox(old_store.parent, now=now)
    client = connect(sandbox)

    assert client.get("/webhooks").json() == {"data": [], "has_more": False}
    assert client.post("/webhooks", json={"url": "http://127.0.0.1:3000/hooks"}).status_code == 201
    assert client.put("/transactions/tx_7K2M9QHD/release").json()["status"] == "released"
    assert client.put("/transactions/tx_90A1B2C3/release").status_code == 409
    assert {balance.consistent for balance in balances(sandbox)} == {True}
    sandbox.close()
    assert look(old_store, "PRAGMA user_version") == [(len(schema.STEPS),)]


def test_endpoints_of_a_store_of_version_2_get_the_events_from_now_on(folder: Path, now: Now, connect: Connect) -> None:
    path = restore(folder, 2)
    sandbox = open_sandbox(folder, now=now)

    connect(sandbox).put("/transactions/tx_7K2M9QHD/release")
    connect(sandbox).post("/transactions", json={"amount": 1, "currency": "USD"})

    sandbox.close()
    expected = [("transaction.released", "wh_0000000A"), ("transaction.released", "wh_0000000B")]
    joined = "SELECT kind, endpoint_id FROM events JOIN deliveries ON event = events.position ORDER BY events.position"
    assert look(path, joined) == [*expected, ("transaction.created", "wh_0000000A")]


def test_migrated_store_equals_a_new_store(old_store: Path, tmp_path: Path, now: Now) -> None:
    open_store(old_store.parent, now=now).close()
    open_store(tmp_path / "new", now=now).close()

    tables = "SELECT name, type, sql FROM sqlite_schema ORDER BY name"
    columns = "SELECT m.name, c.* FROM sqlite_schema m, pragma_table_info(m.name) c ORDER BY m.name, c.cid"
    new = tmp_path / "new" / "sandbox.db"
    assert [row[:2] for row in look(old_store, tables)] == [row[:2] for row in look(new, tables)]
    assert look(old_store, columns) == look(new, columns)


def test_failed_migration_leaves_the_old_store_unchanged(
    old_store: Path, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (*schema.STEPS[1], "CREATE TABLE users (twice)")
    with monkeypatch.context() as patched:
        patched.setattr("escrowctl.sandbox.store.STEPS", (schema.STEPS[0], broken))
        with pytest.raises(Exception, match="already exists"):
            open_store(old_store.parent, now=now)

    assert look(old_store, "PRAGMA user_version") == [(1,)]
    assert look(old_store, "SELECT count(*) FROM sqlite_schema WHERE name = 'webhook_endpoints'") == [(0,)]
    open_store(old_store.parent, now=now).close()
