"""How the store's transactions become durable: one by one, or those of several requests together.

A server that alone owns its store answers, in one thread, all requests that have arrived, and lets
their transactions share one commit, and so one fsync: each runs in a savepoint of its own, and none
is answered before the commit that holds it. (Threads that hand each other the commit were tried:
with eight they are ten times slower, for each waits for the interpreter's lock.)
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Commits(Protocol):
    """Runs transactions on one connection."""

    def transaction(self, begin: str) -> AbstractContextManager[None]:
        """One transaction, undone when the block raises; `begin` is the statement that opens it.

        Raise sqlite3.Error, with nothing changed, where it cannot be opened.
        """

    def together(self) -> AbstractContextManager[None]:
        """Make all transactions of the block durable when it ends.

        Raise sqlite3.Error, with nothing of all of them changed, where that cannot be done.
        """


class SingleCommits:
    """A commit for each transaction, for any number of threads; other processes may write in between."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._turn = threading.Lock()

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """See `Commits`; it is durable when the block has ended."""
        with self._turn, committed(self._connection, begin):
            yield

    @contextmanager
    def together(self) -> Iterator[None]:
        """See `Commits`."""
        yield


class GroupCommits:
    """One commit for all transactions of `together`, on the store's only connection and in one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._grouped = False

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """See `Commits`; inside `together` it is durable when that has ended."""
        if not self._grouped:
            with committed(self._connection, begin):
                yield
            return
        if not self._connection.in_transaction:
            raise _lost()
        self._connection.execute("SAVEPOINT member")
        try:
            yield
            self._connection.execute("RELEASE member")
        except BaseException:
            # On a full disk SQLite undoes everything by itself; there is no savepoint left then.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO member")
                self._connection.execute("RELEASE member")
            raise

    @contextmanager
    def together(self) -> Iterator[None]:
        """See `Commits`."""
        self._grouped = True
        try:
            with committed(self._connection, "BEGIN IMMEDIATE"):
                yield
                if not self._connection.in_transaction:
                    raise _lost()
        finally:
            self._grouped = False


def _lost() -> sqlite3.Error:
    return sqlite3.OperationalError("the database undid the transaction")


@contextmanager
def committed(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """One transaction and its commit; undone when the block raises."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
