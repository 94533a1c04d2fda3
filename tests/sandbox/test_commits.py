"""Group commit: one commit for several transactions; each can roll back alone, and the commit stores all or none."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from escrowctl.sandbox.commits import Commits


class Book:
    """A wrapper of SQLite's connection: it counts commits, and can make them fail."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("CREATE TABLE items (name TEXT UNIQUE)")
        self.commits = Commits(self)  # type: ignore[arg-type] # it replaces the connection
        self.committed = 0
        self.fail = False

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        self.committed += statement == "COMMIT"
        if statement == "COMMIT" and self.fail:
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement)

    def add(self, name: str) -> None:
        with self.commits.transaction("BEGIN IMMEDIATE"):
            self.connection.execute("INSERT INTO items VALUES (?)", (name,))

    def names(self) -> list[str]:
        return [name for (name,) in self.connection.execute("SELECT name FROM items ORDER BY rowid")]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path / "items.db")
    yield made
    made.connection.close()


def test_transactions_in_a_group_share_one_commit(book: Book) -> None:
    with book.commits.group():
        for name in ("a", "b", "c"):
            book.add(name)
        assert book.committed == 0, "nothing is durable before the end of the block"
    book.add("d")

    assert (book.names(), book.committed) == (["a", "b", "c", "d"], 2)


def test_failed_transaction_in_a_group_rolls_back_alone(book: Book) -> None:
    with book.commits.group():
        book.add("a")
        with pytest.raises(sqlite3.IntegrityError):
            book.add("a")
        with pytest.raises(ValueError, match="refused"), book.commits.transaction("BEGIN IMMEDIATE"):  # noqa: PT012 - one member
            book.connection.execute("INSERT INTO items VALUES ('half')")
            raise ValueError("refused")
        book.add("b")

    assert book.names() == ["a", "b"]


def test_failed_commit_of_a_group_raises_and_stores_nothing(book: Book) -> None:
    book.fail = True
    with pytest.raises(sqlite3.OperationalError, match="disk is full"), book.commits.group():  # noqa: PT012 - the group
        book.add("a")
        book.add("b")
    book.fail = False
    book.add("c")

    assert book.names() == ["c"]


def test_group_rolled_back_by_the_database_raises(book: Book) -> None:
    with pytest.raises(sqlite3.OperationalError, match="rolled back"), book.commits.group():  # noqa: PT012 - the group
        book.add("a")
        with pytest.raises(sqlite3.OperationalError, match="I/O"), book.commits.transaction("BEGIN IMMEDIATE"):  # noqa: PT012 - a member
            book.connection.execute("ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")
        with pytest.raises(sqlite3.OperationalError, match="rolled back"):
            book.add("b")

    assert book.names() == []
    book.add("after")
    assert book.names() == ["after"]
