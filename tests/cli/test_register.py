"""`tx list --local`: the escrows created or released from here, by the journal, and which hold money too long."""

import json
import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Result, Run
from wire_server import Seen, WireServer, by_method, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import CREATE, HELD, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet

COLUMNS = ["id", "amount", "currency", "status", "created", "released", "reference", "entry"]


class Escrows:
    """A service of escrows; `statuses` is what it says of each, `lost` are ids whose release gets no reply."""

    def __init__(self, lost: tuple[str, ...] = ()) -> None:
        self.statuses: dict[str, str] = {}
        self._lost = lost

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        if seen.method == "POST":
            self._create(seen, connection)
            return
        resource_id = seen.target.removesuffix("/release").rpartition("/")[2]
        if seen.method == "PUT" and resource_id in self._lost:
            hang_up(seen, connection)
            return
        if seen.method == "PUT":
            self.statuses[resource_id] = "released"
        self._reply(resource_id, connection)

    def _create(self, seen: Seen, connection: socket.socket) -> None:
        (amount,) = re.findall(rb'"amount":([0-9.]+)', seen.body)
        if amount == b"13":
            hang_up(seen, connection)
        elif amount == b"14":
            connection.sendall(http_reply("400 Bad Request", b"{}"))
        else:
            resource_id = f"tx_{amount.decode()}"
            self.statuses[resource_id] = "failed" if amount == b"15" else "held"
            self._reply(resource_id, connection)

    def _reply(self, resource_id: str, connection: socket.socket) -> None:
        status = self.statuses.get(resource_id)
        record = {"id": resource_id, "status": status, "amount": int(resource_id[3:]), "currency": "USD"}
        found = status is not None
        connection.sendall(http_reply("200 OK" if found else "404 Not Found", json.dumps(record).encode()))


def days_later(days: float) -> Callable[[], datetime]:
    return lambda: NOW + timedelta(days=days)


def create(run: Run, amount: int, **keywords: Any) -> Result:
    words = ("tx", "create", "--amount", str(amount), "--currency", "USD", "--reference", f"order-{amount}")
    return run(*words, now=lambda: NOW, **keywords)


def release(run: Run, *ids: str) -> Result:
    return run("tx", "release", *ids, "--yes", now=days_later(1))


def register(run: Run, *words: str, **keywords: Any) -> Result:
    keywords.setdefault("now", days_later(2))
    return run("tx", "list", "--local", *words, **keywords)


def statuses(result: Result) -> dict[str | None, str]:
    return {row["id"]: row["status"] for row in json.loads(result.out)}


@pytest.fixture
def seven(profile: Profile, run: Run) -> tuple[WireServer, Escrows]:
    """A journal of seven creates: held, released, with an unknown release, failed, unknown, refused; and a release
    of an escrow from elsewhere.
    """
    service = Escrows(lost=("tx_3",))
    server = profile(STATUS_RELEASED, behave=service)
    for amount in (1, 2, 3, 13, 14, 15):
        create(run, amount)
    service.statuses["tx_8"] = "held"
    release(run, "tx_2", "tx_3", "tx_8")
    server.seen.clear()
    return server, service


def test_register_shows_what_was_created_or_released_from_here(seven: tuple[WireServer, Escrows], run: Run) -> None:
    result = register(run, "--json")

    assert (result.code, seven[0].seen) == (0, [])
    rows = [[row[name] for name in COLUMNS] for row in json.loads(result.out)]
    made, later = "2026-11-21T03:12:44.000Z", "2026-11-22T03:12:44.000Z"
    assert rows == [
        ["tx_8", 8, "USD", "released", None, later, None, "j9"],
        ["tx_15", 15, "USD", "failed", made, None, "order-15", "j6"],
        [None, 13, "USD", "unknown", made, None, "order-13", "j4"],
        ["tx_3", 3, "USD", "unknown", made, None, "order-3", "j3"],
        ["tx_2", 2, "USD", "released", made, later, "order-2", "j2"],
        ["tx_1", 1, "USD", "held", made, None, "order-1", "j1"],
    ]


@pytest.mark.parametrize(("days", "over", "code", "found"), [(7, "7d", 0, []), (7.1, "7d", 16, [None, "tx_1", "tx_3"])])
def test_money_held_for_longer_ends_with_16(
    days: float, over: str, code: int, found: list[str | None], seven: tuple[WireServer, Escrows], run: Run
) -> None:
    result = register(run, "--over", over, "--json", now=days_later(days))

    assert (result.code, sorted(statuses(result), key=str), seven[0].seen) == (code, found, [])


def test_refresh_shows_what_the_service_says_now(seven: tuple[WireServer, Escrows], run: Run) -> None:
    server, service = seven
    service.statuses |= {"tx_1": "disputed", "tx_3": "released"}

    result = register(run, "--refresh", "--json")

    assert result.code == 0
    shown = {"tx_8": "released", "tx_15": "failed", None: "unknown", "tx_3": "released", "tx_2": "released"}
    assert statuses(result) == shown | {"tx_1": "disputed"}
    assert (len(server.seen), server.writes) == (5, [])


def test_refresh_decides_what_is_held_too_long(seven: tuple[WireServer, Escrows], run: Run) -> None:
    server, service = seven
    service.statuses |= {"tx_1": "released", "tx_3": "held"}

    result = register(run, "--over", "1d", "--refresh", "--json", now=days_later(3))

    assert (result.code, statuses(result)) == (16, {None: "unknown", "tx_3": "held"})
    assert sorted(seen.target[-4:] for seen in server.seen) == ["tx_1", "tx_3"]


def test_status_that_is_not_found_is_not_taken_for_the_last_known(profile: Profile, run: Run) -> None:
    service = Escrows()
    profile(STATUS_RELEASED, behave=by_method(POST=service, GET=json_reply(b'{"id":"tx_1","stage":"released"}')))
    create(run, 1)

    result = register(run, "--refresh", "--json")

    assert (result.code, result.error["code"], statuses(result)) == (15, "some_failed", {"tx_1": "held"})


def test_register_leaves_out_other_accounts(profile: Profile, run: Run, home: Path) -> None:
    profile('account = "one"', behave=Escrows())
    create(run, 1)
    own = register(run, "-q").out
    config = home / "config.toml"
    config.write_text(config.read_text().replace("one", "two"))
    (home / "a.key").write_text("sk_test_of_another_account")

    result = register(run, "--json")

    assert (own, result.code, json.loads(result.out)) == ("tx_1\n", 0, [])


def test_release_reply_that_claims_it_is_no_proof(profile: Profile, run: Run) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(json_reply(RELEASED)))

    assert run("tx", "release", "tx_1", "--yes").code == 16
    (row,) = run("tx", "list", "--local", "--json").json

    assert (row["status"], row["released"]) == ("accepted", None)
    assert run("tx", "list", "--local", "--over", "1s", now=lambda: datetime(2030, 1, 1, tzinfo=UTC)).code == 16


def test_ids_that_differ_in_case_are_two_rows(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    behave = by_method(GET=reads, POST=json_reply(HELD.replace(b"tx_1", b"TX_1")), PUT=json_reply(RELEASED))
    profile(STATUS_RELEASED, behave=behave)
    run(*CREATE)
    run("tx", "release", "tx_1", "--yes", "--allow-duplicate", "j1")

    rows = {row["id"]: row["status"] for row in run("tx", "list", "--local", "--json").json}

    assert rows == {"TX_1": "held", "tx_1": "released"}


def test_writes_of_another_api_key_are_no_claim(profile: Profile, run: Run, home: Path) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    profile(STATUS_RELEASED, behave=writes_meet(json_reply(RELEASED), reads=reads))
    assert run("tx", "release", "tx_1", "--yes").code == 0
    for path in home.glob("*.key"):
        path.write_text("sk_test_of_another_account")

    (row,) = run("tx", "list", "--local", "--json").json

    assert (row["id"], row["status"], row["released"]) == ("tx_1", "unknown", None)
