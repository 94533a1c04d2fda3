"""Two hundred rounds of eight processes at one escrow: one PUT each, one exit 0, seven times 7.

The reply is held until all have started. Started means: the process exists, all of escrowctl is imported,
and it has come to the call of `main` with its line. It does not mean that it has read the record, looked
into the journal or asked for a lock: how far the others have come when the reply goes out is left to the
scheduler, and differs from round to round. In half of the rounds, drawn from the seed, the service holds
its first readings until each process has asked for one, so that all of them know the escrow as held.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import internals
import pytest

from escrowctl import sqlite
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.model import AttemptRequest, Intent, Selection, Settlement, State
from escrowctl.journal.opening import find_place, open_journal
from escrowctl.journal.sqlite.files import read_identity
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.journal.tables.transaction import TableTransaction
from faults.kills import Violation, ViolationError
from faults.races import Course, Races, Starter
from faults.seeds import draw_seed

SHORT, SHORT_OF_OTHERS, LONG = 6, 2, 200

PROFILE = '[profiles.{name}]\nbase_url = "{url}"\napi_key_file = "key"\n{more}\n'
AT_FIRST, AT_SECOND = "http://127.0.0.1:{first}", "http://127.0.0.1:{second}"


def profiles(**named: tuple[str, ...]) -> str:
    """Return a config.toml: name -> base URL and further lines."""
    return "".join(
        PROFILE.replace("{name}", name).replace("{url}", url).replace("{more}", "\n".join(more))
        for name, (url, *more) in named.items()
    )


def course(*more: str, **named: tuple[str, ...]) -> Course:
    """Return the course of these profiles, one way through each."""
    return Course(profiles(**named), tuple((name, more) for name in named))


def respelled(resource_id: str, way: int) -> str:
    return resource_id.upper() if way % 2 else resource_id


ONE = course(a=(AT_FIRST,))
CAPPED = course(a=(AT_FIRST, 'caps.USD = "250"'))

OTHERS = {
    "two profiles of one origin": course(a=(AT_FIRST,), b=(AT_FIRST,)),
    "two origins under one service_id": course(
        a=(AT_FIRST, 'service_id = "acme"'), b=(AT_SECOND, 'service_id = "acme"')
    ),
    "two prefixes": course(a=(AT_FIRST,), b=(AT_FIRST, 'api_prefix = "/v2"')),
    "a base URL with a path": course(a=(AT_FIRST,), b=(AT_FIRST + "/gateway/",)),
    "an upper-case name": course(a=("http://localhost:{first}",), b=("HTTP://LOCALHOST:{first}",)),
    "two spellings of the id that the service echoes as one": Course(
        profiles(a=(AT_FIRST,)), (("a", ()), ("a", ())), respelled
    ),
    "a service_id and the plain origin": course(a=(AT_FIRST, 'service_id = "acme"'), b=(AT_FIRST,)),
    "two service_ids at one origin": course(a=(AT_FIRST, 'service_id = "acme"'), b=(AT_FIRST, 'service_id = "other"')),
    "the default port written or omitted": Course(
        profiles(a=("http://127.0.0.1",), b=("http://127.0.0.1:80/",)), (("a", ()), ("b", ())), ports=(80, 0)
    ),
    "127.0.0.1 and localhost": course(a=(AT_FIRST,), b=("http://localhost:{first}",)),
    "the id as typed where one way cannot read the record": Course(
        profiles(a=(AT_FIRST,), unreadable=(AT_FIRST, 'api_prefix = "/unreadable"')),
        (("a", ("--allow-unreadable",)), ("unreadable", ("--allow-unreadable",))),
        lambda resource_id, _way: resource_id.upper(),
    ),
}
INTENT = Intent(
    operation=RELEASE_TRANSACTION.name,
    service="https://escrow.example.com",
    profile="a",
    method="PUT",
    url="https://escrow.example.com/api/v1/transactions/tx_1/release",
    body=None,
    idempotency_key="k1",
    fingerprint="tx_1",
    resource_id="tx_1",
)


@contextlib.contextmanager
def races(folder: Path, through: Course, starter: Starter) -> Iterator[Races]:
    try:
        run = Races(folder, draw_seed(), through, starter)
    except OSError as error:
        pytest.skip(f"the fake service cannot listen on port {through.ports[0]}: {error}")
    with contextlib.closing(run):
        yield run


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    with contextlib.closing(Starter()) as started:
        yield started


def play(folder: Path, through: Course, starter: Starter, rounds: int) -> None:
    with races(folder, through, starter) as run:
        release_often(run, rounds)


def release_often(run: Races, rounds: int) -> None:
    for _ in range(rounds):
        run.release()


@pytest.mark.parametrize("rounds", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_eight_processes_release_one_escrow_once(tmp_path: Path, starter: Starter, rounds: int) -> None:
    play(tmp_path, ONE, starter, rounds)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [SHORT_OF_OTHERS, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("ways", OTHERS)
def test_two_ways_to_one_escrow_are_one(tmp_path: Path, starter: Starter, ways: str, rounds: int) -> None:
    play(tmp_path, OTHERS[ways], starter, rounds)


@pytest.mark.slow
def test_eight_creates_at_once_stay_under_the_cap(tmp_path: Path, starter: Starter) -> None:
    with races(tmp_path, CAPPED, starter) as run:
        run.renews = True
        for _ in range(2):
            run.create_under_cap(250)


def test_write_settled_by_another_process_between_two_reads_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, now = tmp_path / "state", lambda: datetime.now(UTC)
    with (
        contextlib.closing(open_journal(find_place(folder), now=now)) as winner,
        contextlib.closing(open_journal(find_place(folder), now=now)) as loser,
    ):
        entry = winner.begin(AttemptRequest(INTENT, "r1"))
        asks = LockFile.is_held

        def settled_meanwhile(locks: LockFile, name: str) -> bool:
            monkeypatch.setattr(LockFile, "is_held", asks)
            winner.settle(entry, Settlement(Outcome.DONE, "200", 200))
            winner.locks.close()
            return asks(locks, name)

        monkeypatch.setattr(LockFile, "is_held", settled_meanwhile)
        (seen,) = loser.select_all(Selection(9))

    assert seen.state is State.DONE


def test_tables_that_another_process_creates_meanwhile_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, now = find_place(tmp_path / "state"), lambda: datetime.now(UTC)
    read_version = sqlite.read_version

    def create_meanwhile(database: sqlite3.Connection) -> int:
        found = read_version(database)
        monkeypatch.setattr(sqlite, "read_version", read_version)
        open_journal(place, now=now).close()
        monkeypatch.setattr("escrowctl.journal.sqlite.storage.read_identity", read_while_locked)
        return found

    def read_while_locked(database: sqlite3.Connection) -> tuple[str, str | None]:
        monkeypatch.setattr("escrowctl.journal.sqlite.storage.read_identity", read_identity)
        other = sqlite3.connect(place.location, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.1, other.close).start()
        return read_identity(database)

    monkeypatch.setattr(sqlite, "read_version", create_meanwhile)

    with contextlib.closing(open_journal(place, now=now)) as journal:
        assert journal.storage.journal_id == place.find_id()


@pytest.mark.slow
def test_write_begun_by_another_process_between_reads_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, now = tmp_path / "state", lambda: datetime.now(UTC)

    def begin() -> None:
        with contextlib.closing(open_journal(find_place(folder), now=now)) as winner:
            winner.begin(AttemptRequest(INTENT, "r1"))

    with contextlib.closing(open_journal(find_place(folder), now=now)) as loser:
        begins = threading.Thread(target=begin)
        read = internals.read(internals.GUARDING)

        def begun_meanwhile(transaction: TableTransaction, *words: Any, **keywords: Any) -> Any:
            found = read(transaction, *words, **keywords)
            monkeypatch.setattr(internals.GUARDING, read)
            begins.start()
            # It may have to wait until the loser has looked to the end.
            begins.join(0.5)
            return found

        monkeypatch.setattr(internals.GUARDING, begun_meanwhile)
        told = None
        try:
            loser.find_repeated(INTENT, resend_throttled=False)
        except EscrowctlError as refused:
            told = refused.code
        finally:
            begins.join()

    assert told in (None, ErrorCode.BUSY)


@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
def test_the_races_notice_a_program_that_takes_no_locks(tmp_path: Path) -> None:
    with contextlib.closing(Starter("takes_no_locks")) as broken, races(tmp_path, ONE, broken) as run:
        # Long enough for the others to come upon what is in flight.
        run.service.lingers = 0.3
        with pytest.raises(ViolationError):
            release_often(run, 8)
        assert run.mark.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
def test_races_detect_a_cap_checked_outside_the_commit(tmp_path: Path) -> None:
    starter = Starter("checks_caps_outside_the_commit")
    with contextlib.closing(starter), races(tmp_path, CAPPED, starter) as run:
        with pytest.raises(ViolationError) as noticed:
            run.create_under_cap(250)
        assert (noticed.value.kind, run.mark.exists()) == (Violation.NOT_HELD_BACK, True)
