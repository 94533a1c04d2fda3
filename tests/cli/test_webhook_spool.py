"""The file of events of `webhook listen`: its bounds, its age, and what is damaged in it."""

import contextlib
import http.client
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import Result, Run
from webhook_sender import SECRET, post, send
from webhooks.listener import wait_until

from cli.events import Application, Listen, lines_of, rows_of
from cli.test_folders import give_away

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options


@pytest.mark.slow
def test_event_that_cannot_be_stored_is_not_accepted(
    listen: Listen, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.webhooks.spool._BUSY_SECONDS", 0.05)
    statuses: list[int] = []

    def act(port: int) -> None:
        with contextlib.closing(sqlite3.connect(spool)) as database:
            database.execute("BEGIN IMMEDIATE")
            with pytest.raises(http.client.RemoteDisconnected):
                send(port, 1)
            database.rollback()
        statuses.append(send(port, 1))

    result = listen(act, "--json")

    assert (statuses, [line["arrivals"] for line in lines_of(result)]) == ([200], [1])
    assert "could not be stored" in result.err


@pytest.fixture(params=[("MAX_UNVERIFIED", 3), ("MAX_UNVERIFIED_BYTES", 2000)], ids=["events", "bytes"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three events of `unsigned`."""
    name, value = request.param
    monkeypatch.setattr(f"escrowctl.webhooks.spool.{name}", value)


def unsigned(port: int, number: int) -> int:
    return post(port, f"{number}".encode().rjust(400), {"webhook-id": f"msg_{number}"})


@pytest.mark.usefixtures("bound")
def test_unverified_event_without_room_is_not_acknowledged(listen: Listen, run: Run, target: str, spool: Path) -> None:
    statuses: list[int] = []

    def listen_to(*numbers: int) -> Result:
        statuses.clear()
        without = ("ESCROWCTL_WEBHOOK_SECRET",)
        return listen(lambda port: statuses.extend(unsigned(port, one) for one in numbers), "--json", without=without)

    result = listen_to(1, 2, 3, 4, 1, 5)

    assert statuses == [200, 200, 200, 503, 200, 503]
    assert [line["id"] for line in lines_of(result)] == ["msg_1", "msg_2", "msg_3", "msg_1"]
    assert [event[0] for event in rows_of(spool)] == [1, 2, 3]
    assert run("webhook", "replay", "--since", "30d", "--unverified", "--forward-to", target).code == 0
    listen_to(4)
    assert statuses == [200]


@pytest.mark.usefixtures("bound")
def test_unverified_events_that_were_forwarded_make_room(
    listen: Listen, spool: Path, application: Application, target: str
) -> None:
    statuses: list[int] = []

    def act(port: int) -> None:
        send(port, 0)
        statuses.extend(unsigned(port, number) for number in (1, 2, 3))
        wait_until(lambda: len(rows_of(spool, "SELECT 1 FROM forwards WHERE state = 'done'")) == 4)
        statuses.extend(unsigned(port, number) for number in (4, 5))
        wait_until(lambda: len(application.seen) == 6)

    listen(act, "--forward-to", target, "--unverified")

    assert statuses == [200] * 5
    assert application.ids == [f"msg_{number}" for number in range(6)]
    # The first one is verified: it has no part in the bound.
    assert [event[0] for event in rows_of(spool)] == [1, 4, 5, 6]


@pytest.mark.slow
def test_old_events_are_removed_unless_they_are_to_be_forwarded(
    listen: Listen, application: Application, target: str, spool: Path
) -> None:
    def send_all(port: int) -> None:
        for number in (1, 2, 3):
            send(port, number)
        wait_until(lambda: len(application.seen) == 3)

    def left(days: int) -> list[int]:
        listen(lambda _port: None, now=lambda: datetime.now(UTC) + timedelta(days=days))
        return [event[0] for event in rows_of(spool)]

    listen(send_all, "--forward-to", target)
    listen(lambda port: send(port, 4))
    rows_of(spool, "UPDATE forwards SET state = iif(event = 2, 'waiting', 'failed') WHERE event IN (2, 3)")

    assert [left(29), left(31)] == [[1, 2, 3, 4], [2, 3]]
    # A number is never given again: the next event would pass for one that was forwarded.
    listen(lambda port: send(port, 5))
    assert left(0) == [2, 3, 5]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["older", "newer", "open to others", "no database", "page", "owner", "link"])
def test_file_of_events_that_cannot_be_used_is_reported(
    how: str, listen: Listen, run: Run, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(lambda _port: None)
    match how:
        case "page":
            content = spool.read_bytes()
            spool.write_bytes(content[:100].ljust(len(content), b"\xff"))
        case "owner":
            give_away(spool, monkeypatch)
        case "link":
            spool.unlink()
            spool.symlink_to("nowhere")
        case "open to others":
            spool.chmod(0o644)
        case "no database":
            spool.write_bytes(b"no database" * 1000)
        case _:
            rows_of(spool, f"PRAGMA user_version = {1 if how == 'older' else 99}")

    result = run("webhook", "listen", "--port", "0", "--json")

    assert (result.code, result.error["code"]) == (17, "state_unusable")


DAMAGE = {
    "headers that are no pairs": "UPDATE events SET headers = '[1]'",
    "headers without an end": "UPDATE events SET headers = replace(hex(zeroblob(50000)), '0', '[')",
    "headers that no request has": 'UPDATE events SET headers = \'[["webhook-id", "\u2022"]]\'',
    "a time that is none": "UPDATE events SET received_at = 'now'",
}
NOWHERE = ("--forward-to", "http://127.0.0.1:9/")


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_event_is_reported_by_each_command(
    change: str, listen: Listen, run: Run, spool: Path, tmp_path: Path
) -> None:
    environ = {"ESCROWCTL_WEBHOOK_SECRET": SECRET}
    listen(lambda port: send(port, 1), *NOWHERE)
    rows_of(spool, change)

    results = [
        run("webhook", "verify", "--event", "msg_1", "--json", environ=environ),
        run("webhook", "replay", "msg_1", *NOWHERE, "--json"),
        listen(lambda _port: wait_until(lambda: not (tmp_path / "ready.json").exists()), *NOWHERE, "--json"),
    ]

    assert [(result.code, result.error["code"]) for result in results] == [(17, "state_unusable")] * 3


def test_numbers_that_are_too_large_are_damage(listen: Listen, spool: Path, tmp_path: Path) -> None:
    statuses: list[int] = []
    listen(lambda port: send(port, 1), *NOWHERE)
    rows_of(spool, "UPDATE forwards SET attempts = 9223372036854775807")
    rows_of(spool, "UPDATE arrivals SET count = 9223372036854775807")

    counted = listen(lambda port: statuses.append(send(port, 1)))
    tried = listen(lambda _port: wait_until(lambda: not (tmp_path / "ready.json").exists()), *NOWHERE, "--json")

    assert (statuses, counted.code) == ([503], 130)
    assert (tried.code, tried.error["code"]) == (17, "state_unusable")
