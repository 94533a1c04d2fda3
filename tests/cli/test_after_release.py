"""After the PUT of a release: what is read back, recorded and reported when something fails."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from wire_server import Behave, Seen, hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, in_turn, json_reply, writes_meet

KNOWN_WORD = 'status.released = ["released"]'


def _fail_from_now_on(home: Path) -> None:
    """Let no later record reach the journal: what is recorded so far is on disk."""
    (home / "state" / "journal.db-journal").unlink(missing_ok=True)
    (home / "state" / "journal.db-journal").mkdir()


@pytest.mark.parametrize(
    ("answer", "code"), [(json_reply(RELEASED), 0), (json_reply(b"", "500 Oh"), 12)], ids=["accepted", "unknown"]
)
def test_release_counts_as_sent_when_the_journal_fails_afterwards(
    profile: Profile, run: Run, home: Path, answer: Any, code: int
) -> None:
    def read_back(seen: Seen, connection: socket.socket) -> None:
        _fail_from_now_on(home)
        json_reply(RELEASED)(seen, connection)

    server = profile(KNOWN_WORD, behave=writes_meet(answer, reads=in_turn(json_reply(HELD), read_back)))

    result = run(*RELEASE, "--json")

    assert (result.code, len(server.writes)) == (code, 1), result.err
    assert "Nothing was sent" not in result.err
    if code == 0:
        assert result.json["verified"] is True


NOT_RECORDED = {
    "a conflict that changed nothing": ("409 No", HELD),
    "a refusal that changed something": ("400 No", HELD.replace(b"held", b"moving")),
    "a refusal that reads as released": ("400 No", RELEASED),
}


@pytest.mark.parametrize(("status", "now"), NOT_RECORDED.values(), ids=NOT_RECORDED)
def test_reading_that_cannot_be_recorded_leaves_the_release_unknown(
    profile: Profile, run: Run, home: Path, status: str, now: bytes
) -> None:
    def read_back(seen: Seen, connection: socket.socket) -> None:
        _fail_from_now_on(home)
        json_reply(now)(seen, connection)

    reads = in_turn(json_reply(HELD), read_back)
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", status), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], result.error["outcome"]) == (12, "outcome_unknown", "unknown")
    assert (len(server.writes), "Nothing was sent" in result.err) == (1, False)


def test_several_releases_count_a_reading_not_recorded_as_unknown(profile: Profile, run: Run, home: Path) -> None:
    def read_back(seen: Seen, connection: socket.socket) -> None:
        _fail_from_now_on(home)
        json_reply(HELD)(seen, connection)

    reads = in_turn(json_reply(HELD), read_back)
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", "409 No"), reads=reads))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "some_unknown", 1)


def test_release_decided_elsewhere_during_the_reading_is_unknown(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def read_back(seen: Seen, connection: socket.socket) -> None:
        decide = ("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", "--reason", "desk")
        codes.append(subprocess.run([sys.executable, "-m", "escrowctl", *decide], check=False).returncode)
        json_reply(HELD)(seen, connection)

    reads = in_turn(json_reply(HELD), read_back)
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", "409 No"), reads=reads))

    result = run(*RELEASE, "--json")

    assert (codes, result.code, result.error["code"]) == ([0], 12, "outcome_unknown")
    assert (len(server.writes), "Nothing was sent" in result.err) == (1, False)


def test_outcome_neither_judged_nor_recorded_is_unknown(
    profile: Profile, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(seen: Seen, connection: socket.socket) -> None:
        _fail_from_now_on(home)
        json_reply(RELEASED)(seen, connection)

    def fail(*_words: Any, **_named: Any) -> None:
        raise RuntimeError("a defect")

    server = profile(behave=writes_meet(answer))
    monkeypatch.setattr("escrowctl.writes.sending.judge_write", fail)

    result = run(*RELEASE, "--json")

    assert (result.code, len(server.writes)) == (12, 1), result.err
    assert result.error["outcome"] == "unknown"
    assert result.error["request"]["method"] == "PUT"
    assert '"code": "defect"' in result.err
    assert len(list((home / "state" / "crashes").iterdir())) == 1


def test_signal_during_the_wait_reports_the_accepted_release(profile: Profile, run: Run) -> None:
    def interrupt(_seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    profile(KNOWN_WORD, behave=writes_meet(json_reply(HELD)))

    result = run(*RELEASE, "--wait", "--json", sleep=interrupt)

    assert (result.code, result.json["id"], result.json["verified"]) == (130, "tx_1", False)


@pytest.mark.parametrize("status", ["400 No", "409 No", "422 No"])
def test_release_refused_but_read_as_released_is_done(
    profile: Profile, run: Run, journal: Journal, status: str
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", status), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.json["verified"], len(server.writes)) == (0, True, 1)
    assert (notes_in(result.err), result.json["http_status"]) == ({"released_despite_refusal"}, int(status[:3]))
    assert journal() == [("release_transaction", "done")]


def test_release_conflict_that_changed_nothing_is_refused(profile: Profile, run: Run, journal: Journal) -> None:
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", "409 No"), reads=json_reply(HELD)))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (7, "conflict", 1)
    assert result.error["hint"] == "to check tx_1 again (now: held 100 USD): escrowctl tx get tx_1"
    assert journal() == [("release_transaction", "refused")]


@pytest.mark.parametrize(
    ("line", "headers"),
    [('idempotency = "header"', ("Retry-After: 3600",)), ('idempotency = "none"', ("Retry-After: 1",))],
    ids=["deduplicates", "asks to wait"],
)
def test_release_conflict_that_may_be_in_progress_stays_unknown(
    profile: Profile, run: Run, journal: Journal, line: str, headers: tuple[str, ...]
) -> None:
    conflict = json_reply(b"", "409 In Progress", *headers)
    reads = in_turn(json_reply(HELD), json_reply(HELD), json_reply(HELD), json_reply(RELEASED))
    server = profile(KNOWN_WORD, line, behave=writes_meet(conflict, reads=reads))

    first, again = run(*RELEASE, "--json"), run(*RELEASE, "--json")

    assert (first.code, first.error["code"]) == (12, "outcome_unknown")
    assert (again.code, again.error["code"], len(server.writes)) == (12, "earlier_unknown", 1)
    assert [run("journal", "resolve", "j1").code for _ in range(2)] == [12, 0]
    assert journal() == [("release_transaction", "done")]


@pytest.mark.parametrize("then", [json_reply(b'{"id":"tx_1","status":"moving"}'), json_reply(b"", "500 Oh")])
def test_release_conflict_that_changed_something_is_unknown(
    profile: Profile, run: Run, journal: Journal, then: Behave
) -> None:
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", "409 No"), reads=in_turn(json_reply(HELD), then)))

    result = run(*RELEASE, "--json", sleep=lambda _seconds: None)

    assert (result.code, result.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert journal() == [("release_transaction", "unknown")]


@pytest.mark.parametrize(("now", "code"), [(RELEASED, 0), (HELD, 7)])
def test_release_conflict_with_skip_released_succeeds_if_it_reads_released(
    profile: Profile, run: Run, now: bytes, code: int
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(now))
    profile(KNOWN_WORD, behave=writes_meet(json_reply(b"", "409 No"), reads=reads))

    result = run(*RELEASE, "--skip-released", "--json")

    assert (result.code, "Nothing was sent" in result.err) == (code, False)
    if code == 0:
        told = result.json
        assert (told["http_status"], told["status_before"], told["status_after"]) == (409, "held", "released")
        assert notes_in(result.err) == {"released_despite_refusal"}


@pytest.mark.representative("unknown")
@pytest.mark.parametrize(("answer", "code"), [(json_reply(RELEASED), 7), (hang_up, 12)], ids=["done", "unknown"])
def test_release_waits_for_another_process_and_reports_its_outcome(
    profile: Profile, run: Run, answer: Any, code: int
) -> None:
    sent, gate = threading.Event(), threading.Event()

    def hold(seen: Seen, connection: socket.socket) -> None:
        sent.set()
        assert gate.wait(20)
        answer(seen, connection)

    reads = in_turn(json_reply(HELD), json_reply(HELD))
    server = profile(behave=writes_meet(hold, reads=reads))
    first = subprocess.Popen(
        [sys.executable, "-m", "escrowctl", *RELEASE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert sent.wait(20)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        gate.set()
        first.wait(20)

    result = run(*RELEASE, "--json", sleep=sleep)

    assert (result.code, len(server.writes), len(slept)) == (code, 1, 1), result.err
    assert result.error["code"] == {7: "already_done", 12: "earlier_unknown"}[code]


@pytest.mark.parametrize("now", [HELD.replace(b"held", b"moving"), RELEASED], ids=["changed", "released"])
def test_release_under_the_key_of_another_process_waits_for_its_result(profile: Profile, run: Run, now: bytes) -> None:
    sent, gate = threading.Event(), threading.Event()

    def hold(seen: Seen, connection: socket.socket) -> None:
        sent.set()
        assert gate.wait(20)
        json_reply(now)(seen, connection)

    def read(seen: Seen, connection: socket.socket) -> None:
        json_reply(now if gate.is_set() else HELD)(seen, connection)

    server = profile(
        'status.released = ["released"]', 'status.pending = ["moving"]', behave=writes_meet(hold, reads=read)
    )
    line = (*RELEASE, "--idempotency-key", "K1", "--json")
    first = subprocess.Popen(
        [sys.executable, "-m", "escrowctl", *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert sent.wait(20)

    def sleep(_seconds: float) -> None:
        gate.set()
        first.wait(20)

    result = run(*line, sleep=sleep)

    assert (first.returncode, result.code, len(server.writes)) == (0, 0, 1), result.err
    assert result.json["verified"] is (now is RELEASED)


@pytest.mark.parametrize(("terminal", "options", "reported"), [(True, (), 1), (True, ("-q",), 0), (False, (), 0)])
def test_wait_for_another_process_is_reported_once_at_a_terminal(
    profile: Profile,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    *,
    terminal: bool,
    options: tuple[str, ...],
    reported: int,
) -> None:
    profile(behave=json_reply(HELD))
    passed = [0.0]
    monkeypatch.setattr("escrowctl.journal.sqlite.locks.LockFile.hold", lambda _locks, _key: passed[0] > 5)

    result = run(
        *CREATE,
        *options,
        terminal=terminal,
        monotonic=lambda: passed[0],
        sleep=lambda seconds: passed.__setitem__(0, passed[0] + max(seconds, 0.4)),
    )

    line = "note: another process is working on the same create; escrowctl waits up to 120 s\n"
    assert (result.code, result.err.count("escrowctl waits"), result.err.count(line)) == (0, reported, reported)


def test_several_releases_stop_when_the_journal_fails(profile: Profile, run: Run, home: Path) -> None:
    def answer(seen: Seen, connection: socket.socket) -> None:
        _fail_from_now_on(home)
        json_reply(RELEASED)(seen, connection)

    def by_id(seen: Seen, connection: socket.socket) -> None:
        json_reply(HELD.replace(b"tx_1", seen.target.rsplit("/", 1)[-1].encode()))(seen, connection)

    server = profile(behave=writes_meet(answer, reads=by_id))

    result = run("tx", "release", "tx_1", "tx_2", "tx_3", "--yes", "--json")

    assert (result.code, len(server.writes)) == (12, 1)
    assert result.error["message"] == "3 ids: 0 done, 1 failed, 1 unknown, 1 not attempted."


@pytest.mark.parametrize("status", ["400 No", "403 No", "404 No", "422 No"])
def test_refused_release_that_changed_the_record_is_unknown(
    profile: Profile, run: Run, journal: Journal, status: str
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"paid_out")))
    server = profile(behave=writes_meet(json_reply(b"", status), reads=reads))

    codes = [run(*RELEASE).code for _ in range(2)]

    assert (codes, len(server.writes)) == ([12, 12], 1)
    assert journal() == [("release_transaction", "unknown")]


# Repeated under its idempotency key

KEYED = (*RELEASE, "--idempotency-key", "K1", "--json")


def notes_in(err: str) -> set[str]:
    """Return the codes of the notes on stderr."""
    lines = [json.loads(line) for line in err.splitlines()]
    return {line["note"]["code"] for line in lines if "note" in line}


def test_repeated_release_is_not_reported_as_released_before_it_is_read(profile: Profile, run: Run) -> None:
    server = profile(behave=writes_meet(json_reply(b"")))

    first, again = run(*KEYED), run(*KEYED)

    assert (first.code, again.code, again.json["verified"], len(server.writes)) == (0, 0, None, 1)
    assert notes_in(again.err) == {"replayed", "not_confirmed"}
    assert "(released at " not in again.err


@pytest.mark.parametrize(
    ("now", "code", "notes"), [("pending", 0, {"replayed", "not_yet_released"}), ("released", 0, {"replayed"})]
)
def test_repeated_release_reports_what_its_record_shows(
    profile: Profile, run: Run, now: str, code: int, notes: set[str]
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", now.encode())))
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b""), reads=reads))

    first, again = run(*KEYED), run(*KEYED)

    assert (first.code, again.code, len(server.writes)) == (code, code, 1)
    assert (notes_in(again.err), "(released at " in again.err) == (notes, now == "released")


def test_repeated_release_that_its_record_does_not_show_ends_with_16(profile: Profile, run: Run) -> None:
    server = profile(KNOWN_WORD, behave=writes_meet(json_reply(b"")))

    first, again = run(*KEYED), run(*KEYED)

    assert (first.code, again.code, again.error["code"], len(server.writes)) == (16, 16, "not_released", 1)
