"""What only locks do that are worth as much as a lease: it lapses, and its holder may be slow to know."""

import contextlib
import threading
import time
from collections.abc import Sequence

import psycopg
import pytest

from escrowctl.journal.postgres import leases
from escrowctl.journal.postgres.leases import Leases
from storage.postgres import ClockedPlace, execute, lapse_all

pytestmark = pytest.mark.slow  # a server has to be started


def test_lease_that_has_lapsed_is_neither_renewed_nor_worth_a_lock(
    place: ClockedPlace, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_RENEW_SECONDS", 0.01)
    with contextlib.closing(Leases(place.url)) as late, contextlib.closing(Leases(place.url)) as other:
        assert late.hold("name")
        lapse_all(database, place)
        until = time.monotonic() + 10
        while late.may_send() and time.monotonic() < until:
            time.sleep(0.01)
        assert (late.may_send(), other.hold("name")) == (False, True)

        late.free("name")

        assert late.is_held("name")


def test_lease_counts_from_before_it_was_asked_for(place: ClockedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    now, ask = [100.0], Leases._ask  # noqa: SLF001 - the database takes long to answer

    def ask_slowly(locks: Leases, *statements: tuple[str, Sequence[object]]) -> list[object]:
        now[0] += 26
        return ask(locks, *statements)

    monkeypatch.setattr(leases, "_now", lambda: now[0])
    with contextlib.closing(Leases(place.url)) as locks:
        monkeypatch.setattr(Leases, "_ask", ask_slowly)
        assert locks.hold("name")
        monkeypatch.setattr(Leases, "_ask", ask)
        assert not locks.may_send()


def test_end_of_a_lease_does_not_wait_for_a_database_that_is_lost(
    place: ClockedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, cut_off = Leases(place.url), Leases(place.url)
    assert waiting.hold("name")
    assert cut_off.hold("other name")
    monkeypatch.setattr(leases, "_CLOSE_SECONDS", 0.01)
    with waiting._mutex:  # noqa: SLF001 - as a renewal that gets no answer
        closing = threading.Thread(target=waiting.close, daemon=True)
        closing.start()
        closing.join(10)
        assert not closing.is_alive()

    cut_off._database.close()  # type: ignore[union-attr] # noqa: SLF001 - it is connected
    monkeypatch.setattr(leases, "PostgresConnection", None)
    cut_off.close()
    waiting.close()


def test_lock_that_could_not_be_freed_is_taken_again(place: ClockedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(Leases(place.url)) as locks, contextlib.closing(Leases(place.url)) as other:
        assert locks.hold("name")
        with monkeypatch.context() as failing:
            failing.setattr(leases, "_FREE", "SELECT 1 / (cardinality(?::text[]) - 1) WHERE ?::text IS NOT NULL")
            locks.free("name")

        assert (other.hold("name"), locks.hold("name")) == (False, True)


def test_what_a_killed_process_left_is_removed_after_a_day(place: ClockedPlace, database: psycopg.Connection) -> None:
    killed, recent, last = Leases(place.url), Leases(place.url), Leases(place.url)
    assert killed.hold("old")
    execute(database, place, "UPDATE main.senders SET expires_at = clock_timestamp() - interval '25 hours'")
    assert recent.hold("new")
    lapse_recent = "UPDATE main.senders SET expires_at = clock_timestamp() WHERE id = (SELECT sender FROM main.locks "
    execute(database, place, f"{lapse_recent} WHERE name = 'new')")

    assert last.hold("mine")
    last.close()

    assert database.execute(f"SELECT name FROM {place.url.name}.locks".encode()).fetchall() == [("new",)]
    for one in (killed, recent):
        one.close()
