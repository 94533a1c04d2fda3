"""How the store's transactions become durable: one by one, or several in one group commit.

A server is the only user of its store. It answers, in one thread, all requests that have arrived,
and lets their transactions share one commit, and so one fsync: each runs in its own savepoint, and
no request is answered before the commit that contains it. (Threads that pass the commit to each
other were measured: with eight they are ten times slower, because each waits for the interpreter's lock.)
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Commits:
    """Runs transactions on one connection, for any number of threads.

    Groups are for one thread, on the store's only connection.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._turn = threading.Lock()
        self._grouped = False

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """One transaction, rolled back when the block raises; `begin` is the statement that opens it.

        It is durable when the block has ended, inside a group when the group has ended. Raise
        sqlite3.Error, with nothing changed, where it cannot be opened.
        """
        with self._turn, self._member() if self._grouped else committed(self._connection, begin):
            yield

    @contextmanager
    def group(self) -> Iterator[None]:
        """Make all transactions of the block durable when it ends.

        Raise sqlite3.Error, with nothing changed by any of them, where that fails.
        """
        self._grouped = True
        try:
            with committed(self._connection, "BEGIN IMMEDIATE"):
                yield
                self._require_group()
        finally:
            self._grouped = False

    @contextmanager
    def _member(self) -> Iterator[None]:
        self._require_group()
        self._connection.execute("SAVEPOINT member")
        try:
            yield
            self._connection.execute("RELEASE member")
        except BaseException:
            # On a full disk SQLite rolls back the group by itself, with all its savepoints.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO member")
                self._connection.execute("RELEASE member")
            raise

    def _require_group(self) -> None:
        if not self._connection.in_transaction:
            raise sqlite3.OperationalError("the database rolled back the transaction")


@contextmanager
def committed(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """One transaction and its commit; rolled back when the block raises."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
