"""The store's file: its mode, what is refused, and what stays unchanged."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import internals
import pytest
from cli.events import rows_of
from cli.test_folders import give_away, mode
from conftest import Run

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, ExitCode, Outcome
from escrowctl.sandbox.schema import FORMAT
from escrowctl.sandbox.service import open_sandbox
from escrowctl.sandbox.store import open_store

Now = Callable[[], datetime]


def refusal(folder: Path, now: Now) -> EscrowctlError:
    """Open a store that must be refused, check what all refusals share, and return the error."""
    with pytest.raises(EscrowctlError) as caught:
        open_sandbox(folder, now=now)
    error = caught.value
    facts = (error.code, error.code.exit_code, error.outcome, error.effect)
    assert facts == (ErrorCode.STATE_UNUSABLE, ExitCode.LOCAL_STATE, Outcome.NOT_SENT, Effect.NOTHING_SENT)
    assert str(folder) in error.message
    return error


@pytest.fixture
def store_file(folder: Path, now: Now) -> Path:
    """A valid store, reopened once and closed."""
    open_sandbox(folder, now=now).close()
    open_sandbox(folder, now=now).close()
    return folder / "sandbox.db"


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_folders_and_files_are_private_under_any_umask(folder: Path, now: Now) -> None:
    store = open_store(folder, now=now)

    with store.writing() as connection:
        connection.execute("UPDATE sandbox SET clock_ahead_ms = 0")
        journal = folder / "sandbox.db-journal"
        assert [mode(path) for path in (folder.parent, folder)] == [0o700, 0o700]
        assert [mode(path) for path in (folder / "sandbox.db", journal)] == [0o600, 0o600]
    store.close()
    assert {path.name for path in folder.iterdir()} <= {"sandbox.db", "sandbox.db-journal"}
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_reopened_store_keeps_its_identity_and_key(folder: Path, now: Now) -> None:
    first, other = open_sandbox(folder, now=now), open_sandbox(folder / "other", now=now)
    identity, key = first.identity, first.key
    first.close()
    first.close()

    again = open_sandbox(folder, now=now)

    assert (again.identity, again.key) == (identity, key)
    assert (other.identity != identity, other.key != key) == (True, True)
    again.close()
    other.close()


def test_store_is_durable_and_shared_by_its_settings(folder: Path, now: Now) -> None:
    store = open_store(folder, now=now)

    def setting(name: str) -> object:
        return internals.store_connection(store).execute(f"PRAGMA {name}").fetchone()[0]

    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "user_version")
    assert [setting(name) for name in names] == ["persist", 3, 1, 10_000, FORMAT]
    strict = internals.store_connection(store).execute(
        "SELECT strict FROM pragma_table_list WHERE name NOT LIKE 'sql%'"
    )
    assert {tuple(row) for row in strict} == {(1,)}
    store.close()


def damage_pages(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:100].ljust(len(content), b"\xff"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no database": lambda file: file.write_bytes(b"not a database"),
    "a header alone": lambda file: file.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096),
    "damaged pages": damage_pages,
    "no identity": lambda file: rows_of(file, "DROP TABLE sandbox"),
    "a newer version": lambda file: rows_of(file, f"PRAGMA user_version = {FORMAT + 1}"),
}


@pytest.mark.representative("*")
@pytest.mark.parametrize("damage", DAMAGE)
def test_store_that_cannot_be_used_is_refused_and_unchanged(
    folder: Path, store_file: Path, now: Now, damage: str
) -> None:
    DAMAGE[damage](store_file)
    content = store_file.read_bytes()

    error = refusal(folder, now)

    assert [hint.text for hint in error.hints] == ["sandbox reset --yes"]
    assert store_file.read_bytes() == content


def test_store_of_an_older_format_is_refused_until_it_is_reset(home: Path, run: Run) -> None:
    run("--sandbox", "tx", "create", "--amount", "1", "--currency", "USD")
    with closing(sqlite3.connect(home / "state" / "sandbox" / "sandbox.db")) as other:
        other.executescript("DROP TABLE replies; PRAGMA user_version = 4")

    refused = run("--sandbox", "tx", "list", "--json")

    assert (refused.code, refused.error["code"]) == (17, "state_unusable")
    assert "escrowctl sandbox reset --yes" in refused.error["hint"]
    assert (run("sandbox", "reset", "--yes").code, run("--sandbox", "tx", "list").code) == (0, 0)


@pytest.mark.parametrize(("name", "loose"), [("", 0o770), ("sandbox.db", 0o604)])
def test_folder_or_store_open_to_others_is_refused(
    folder: Path, store_file: Path, now: Now, name: str, loose: int
) -> None:
    (folder / name).chmod(loose)

    assert refusal(folder, now).hints


def test_store_locked_by_another_program_is_refused(
    folder: Path, store_file: Path, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.sandbox.store.BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(store_file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(EscrowctlError, match="database is locked"):
            open_store(folder, now=now)


def test_store_of_another_user_is_refused(
    folder: Path, store_file: Path, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_away(store_file, monkeypatch)

    refusal(folder, now)


def test_link_to_nowhere_is_no_store(folder: Path, store_file: Path, now: Now) -> None:
    store_file.unlink()
    store_file.symlink_to("nowhere")

    refusal(folder, now)
    assert not (folder / "nowhere").exists()
