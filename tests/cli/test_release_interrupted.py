"""After the PUT of a release: the journal fails, a signal comes, or another process works on the same one."""

import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from wire_server import Behave, Seen, hang_up

from cli.conftest import Profile, start_elsewhere
from cli.replies import HELD, RELEASE, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet
from cli.unknown_writes import NOT_APPLIED


def reply_after_failure(home: Path, body: bytes) -> Behave:
    """Return a behaviour that lets no later record reach the journal, and answers."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        (home / "state" / "journal.db-journal").unlink(missing_ok=True)
        (home / "state" / "journal.db-journal").mkdir()
        json_reply(body)(seen, connection)

    return behave


@pytest.mark.parametrize(
    ("answer", "code"), [(json_reply(RELEASED), 0), (json_reply(b"", "500 Oh"), 12)], ids=["accepted", "unknown"]
)
def test_release_counts_as_sent_when_the_journal_fails_afterwards(
    profile: Profile, run: Run, home: Path, answer: Any, code: int
) -> None:
    server = profile(
        STATUS_RELEASED,
        behave=writes_meet(answer, reads=in_turn(json_reply(HELD), reply_after_failure(home, RELEASED))),
    )

    result = run(*RELEASE, "--json")

    assert (result.code, len(server.writes)) == (code, 1), result.err
    assert "Nothing was sent" not in result.err
    if code == 0:
        assert result.json["verified"] is True


def hold(answer: Behave) -> tuple[Behave, threading.Event, threading.Event]:
    """Return a behaviour that answers once a gate is open, the event that a request arrived, and the gate."""
    sent, gate = threading.Event(), threading.Event()

    def behave(seen: Seen, connection: socket.socket) -> None:
        sent.set()
        assert gate.wait(20)
        answer(seen, connection)

    return behave, sent, gate


NOT_RECORDED = {
    "a conflict that changed nothing": ("409 No", HELD),
    "a refusal that changed something": ("400 No", HELD.replace(b"held", b"moving")),
    "a refusal that reads as released": ("400 No", RELEASED),
}


@pytest.mark.parametrize(("status", "now"), NOT_RECORDED.values(), ids=NOT_RECORDED)
def test_reading_that_cannot_be_recorded_leaves_the_release_unknown(
    profile: Profile, run: Run, home: Path, status: str, now: bytes
) -> None:
    reads = in_turn(json_reply(HELD), reply_after_failure(home, now))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", status), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], result.error["outcome"]) == (12, "outcome_unknown", "unknown")
    assert (len(server.writes), "Nothing was sent" in result.err) == (1, False)


def test_release_decided_elsewhere_during_the_reading_is_unknown(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def read_back(seen: Seen, connection: socket.socket) -> None:
        codes.append(start_elsewhere(*NOT_APPLIED, "--allow-unreadable").wait(20))
        json_reply(HELD)(seen, connection)

    reads = in_turn(json_reply(HELD), read_back)
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", "409 No"), reads=reads))

    result = run(*RELEASE, "--json")

    assert (codes, result.code, result.error["code"]) == ([0], 12, "outcome_unknown")
    assert (len(server.writes), "Nothing was sent" in result.err) == (1, False)


def test_outcome_neither_judged_nor_recorded_is_unknown(
    profile: Profile, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: Any, **_named: Any) -> None:
        raise RuntimeError("a defect")

    server = profile(behave=writes_meet(reply_after_failure(home, RELEASED)))
    monkeypatch.setattr("escrowctl.writes.writer.judge_write", fail)

    result = run(*RELEASE, "--json")

    assert (result.code, len(server.writes)) == (12, 1), result.err
    assert result.error["outcome"] == "unknown"
    assert result.error["request"]["method"] == "PUT"
    assert '"code": "defect"' in result.err
    assert len(list((home / "state" / "crashes").iterdir())) == 1


def test_signal_during_the_wait_reports_the_accepted_release(profile: Profile, run: Run) -> None:
    def interrupt(_seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    profile(STATUS_RELEASED, behave=writes_meet(json_reply(HELD)))

    result = run(*RELEASE, "--wait", "--json", sleep=interrupt)

    assert (result.code, result.json["id"], result.json["verified"]) == (130, "tx_1", False)


@pytest.mark.representative("unknown")
@pytest.mark.parametrize(("answer", "code"), [(json_reply(RELEASED), 7), (hang_up, 12)], ids=["done", "unknown"])
def test_release_waits_for_another_process_and_reports_its_outcome(
    profile: Profile, run: Run, answer: Any, code: int
) -> None:
    late, sent, gate = hold(answer)
    reads = in_turn(json_reply(HELD), json_reply(HELD))
    server = profile(behave=writes_meet(late, reads=reads))
    first = start_elsewhere(*RELEASE)
    assert sent.wait(20)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        gate.set()
        first.wait(20)

    result = run(*RELEASE, "--json", sleep=sleep)

    assert (result.code, len(server.writes), len(slept)) == (code, 1, 1), result.err
    assert result.error["code"] == {7: "already_done", 12: "earlier_unknown"}[code]


@pytest.mark.slow
@pytest.mark.parametrize("now", [HELD.replace(b"held", b"moving"), RELEASED], ids=["changed", "released"])
def test_release_under_the_key_of_another_process_waits_for_its_result(profile: Profile, run: Run, now: bytes) -> None:
    late, sent, gate = hold(json_reply(now))

    def read(seen: Seen, connection: socket.socket) -> None:
        json_reply(now if gate.is_set() else HELD)(seen, connection)

    server = profile(STATUS_RELEASED, 'status.pending = ["moving"]', behave=writes_meet(late, reads=read))
    line = (*RELEASE, "--idempotency-key", "K1", "--json")
    first = start_elsewhere(*line)
    assert sent.wait(20)

    def sleep(_seconds: float) -> None:
        gate.set()
        first.wait(20)

    result = run(*line, sleep=sleep)

    assert (first.returncode, result.code, len(server.writes)) == (0, 0, 1), result.err
    assert result.json["verified"] is (now is RELEASED)


def test_several_releases_stop_when_the_journal_fails(profile: Profile, run: Run, home: Path) -> None:
    def by_id(seen: Seen, connection: socket.socket) -> None:
        json_reply(HELD.replace(b"tx_1", seen.target.rsplit("/", 1)[-1].encode()))(seen, connection)

    server = profile(behave=writes_meet(reply_after_failure(home, RELEASED), reads=by_id))

    result = run("tx", "release", "tx_1", "tx_2", "tx_3", "--yes", "--json")

    assert (result.code, len(server.writes)) == (12, 1)
    assert result.error["code"] == "some_unknown"


def test_release_verified_by_another_process_during_its_reading_is_done(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def verify_elsewhere(seen: Seen, connection: socket.socket) -> None:
        codes.append(start_elsewhere("journal", "resolve", "j1").wait(20))
        json_reply(RELEASED)(seen, connection)

    reads = in_turn(json_reply(HELD), verify_elsewhere, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))

    result = run(*RELEASE, "--json")

    assert (codes, result.code, len(server.writes)) == ([0], 0, 1), result.err
    assert result.json["verified"] is True
