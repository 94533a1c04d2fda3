"""Group commit: one commit for several transactions; each can roll back alone, and the commit stores all or none."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from escrowctl.sandbox.store import Store


class CountingDatabase:
    """A wrapper of SQLite's connection: it counts commits, and can make them fail."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("CREATE TABLE items (name TEXT UNIQUE)")
        self.connection.execute("CREATE TABLE sandbox AS SELECT '' AS identity, '' AS api_key")
        self.committed = 0
        self.fail = False
        self.store = Store(self, path.parent, now=datetime.now, alone=True)  # type: ignore[arg-type] # the connection

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        self.committed += statement == "COMMIT"
        if statement == "COMMIT" and self.fail:
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement)

    def add(self, name: str) -> None:
        with self.store.writing():
            self.connection.execute("INSERT INTO items VALUES (?)", (name,))

    def names(self) -> list[str]:
        return [name for (name,) in self.connection.execute("SELECT name FROM items ORDER BY rowid")]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CountingDatabase]:
    made = CountingDatabase(tmp_path / "items.db")
    yield made
    made.connection.close()


def test_transactions_in_a_group_share_one_commit(database: CountingDatabase) -> None:
    with database.store.group():
        for name in ("a", "b", "c"):
            database.add(name)
        assert database.committed == 0, "nothing is durable before the end of the block"
    database.add("d")

    assert (database.names(), database.committed) == (["a", "b", "c", "d"], 2)


def test_failed_transaction_in_a_group_rolls_back_alone(database: CountingDatabase) -> None:
    with database.store.group():
        database.add("a")
        with pytest.raises(sqlite3.IntegrityError):
            database.add("a")
        with pytest.raises(ValueError, match="refused"), database.store.writing():  # noqa: PT012 - one member
            database.connection.execute("INSERT INTO items VALUES ('half')")
            raise ValueError("refused")
        database.add("b")

    assert database.names() == ["a", "b"]


def test_failed_commit_of_a_group_raises_and_stores_nothing(database: CountingDatabase) -> None:
    database.fail = True
    with pytest.raises(sqlite3.OperationalError, match="disk is full"), database.store.group():  # noqa: PT012 - the group
        database.add("a")
        database.add("b")
    database.fail = False
    database.add("c")

    assert database.names() == ["c"]


def test_group_rolled_back_by_the_database_raises(database: CountingDatabase) -> None:
    with pytest.raises(sqlite3.OperationalError, match="rolled back"), database.store.group():  # noqa: PT012 - the group
        database.add("a")
        with pytest.raises(sqlite3.OperationalError, match="I/O"), database.store.writing():  # noqa: PT012 - a member
            database.connection.execute("ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")
        with pytest.raises(sqlite3.OperationalError, match="rolled back"):
            database.add("b")

    assert database.names() == []
    database.add("after")
    assert database.names() == ["after"]
