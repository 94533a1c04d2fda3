"""Connections to a shared journal's database. Nothing depends on the session, so a pooler may be in between.

A pooler in transaction mode gives each transaction another session: so there are no prepared statements, no settings
outside a transaction, and the schema is written out in every statement.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import psycopg
from psycopg.waiting import Ready

from escrowctl.errors import EscrowctlError, Reason
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.storage import damaged, unusable
from escrowctl.journal_url import JournalUrl
from escrowctl.runtime import DrawWait

_T = TypeVar("_T")

_CONNECT_SECONDS = 10
_ANSWER_SECONDS, _CANCEL_SECONDS, _READING_SECONDS = 20.0, 5.0, 60.0
"""The longest wait for an answer; the server's own limits are shorter. Then for the end of what was cancelled. Outside
a transaction, a long reading may take longer."""

_NETWORK: Any = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 2, "tcp_user_timeout": 15_000}
"""How long a connection waits for a network that answers nothing (libpq-connect): about 15 s, and not for hours."""

# Python prints what a library logs, if nobody handles it. A command reports the errors itself.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class LimitedConnection(psycopg.Connection[Any]):
    """Cancels what gets no answer in `answer_seconds`, and closes itself if that gets none either.

    The server's own limits do not cover COMMIT, which may wait for a standby, a server that is stopped, or a pooler
    without a free connection.
    """

    answer_seconds = _READING_SECONDS
    draw_wait: Callable[[float], None] = staticmethod(lambda _seconds: None)
    """Called several times a second during a wait, with the seconds so far."""

    @contextlib.contextmanager
    def limited(self, seconds: float = 0) -> Iterator[None]:
        """Limit the wait for answers during the block: to `seconds`, or else as for a write."""
        before, self.answer_seconds = self.answer_seconds, seconds or _ANSWER_SECONDS
        try:
            yield
        finally:
            self.answer_seconds = before

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **options: Any) -> _T:
        """See psycopg. It resumes `gen` when it can read or write, and several times a second."""
        return super().wait(self._limit(gen), *args, **options)

    def _limit(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        began = time.monotonic()
        end, is_cancelled = began + self.answer_seconds, False
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready:
                    with contextlib.suppress(Exception):
                        self.draw_wait(time.monotonic() - began)
                if ready & Ready.R and not is_cancelled:
                    end = time.monotonic() + self.answer_seconds
                elif time.monotonic() > end:
                    if is_cancelled:
                        self.close()
                        raise psycopg.OperationalError("the server does not answer")
                    is_cancelled, end = True, time.monotonic() + _CANCEL_SECONDS
                    with contextlib.suppress(psycopg.Error):
                        self.cancel_safe(timeout=_CANCEL_SECONDS)
                wanted = gen.send(ready)
        except StopIteration as ended:
            return cast("_T", ended.value)


class PostgresConnection:
    """A connection of the thread that opened it, or `any_thread`; see `tables.database.Database`.

    `draw_wait` is called during the wait for an answer; several threads may not share it.
    Raises `ErrorCode.JOURNAL_UNUSABLE` if it cannot connect, and later psycopg's errors.
    """

    json_text = "({column}::json ->> '{name}')"
    row_locks = " FOR UPDATE SKIP LOCKED"

    def __init__(self, url: JournalUrl, *, any_thread: bool = False, draw_wait: DrawWait | None = None) -> None:
        self.url = url
        self._draw_wait = draw_wait
        self.location = str(url)
        self._schema = url.name
        self._thread = None if any_thread else threading.get_ident()
        self.warnings: list[str] = []
        """What the server has warned of since this list was cleared, although a statement succeeded."""
        with translating_errors(self.location):
            self._connection = LimitedConnection.connect(
                url.url,
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=psycopg.RawCursor,
                connect_timeout=_CONNECT_SECONDS,
                **_NETWORK,
                application_name="escrowctl",
                client_encoding="utf8",
            )
        self._connection.add_notice_handler(self._note)
        if draw_wait is not None:
            text = "waiting for the database; do not kill this process"
            self._connection.draw_wait = functools.partial(draw_wait, text)
        self.limited = self._connection.limited
        """See `LimitedConnection`."""
        self._pipeline: psycopg.Pipeline | None = None

    def execute(self, statement: str, values: Sequence[object] = (), /) -> psycopg.Cursor[Any]:
        """Execute one statement; without values, several with `;` between them."""
        if self._thread not in (None, threading.get_ident()):
            raise RuntimeError("one thread uses a storage: the one that opened it")
        cursor = self._connection.execute(_adapt(statement, self._schema), values or None)
        if self._pipeline is not None:
            self._pipeline.sync()
        return cursor

    def send(self, statement: str, values: Sequence[object] = (), /) -> psycopg.Cursor[Any]:
        """See `tables.database.Database`. Call it inside `pipeline`, whose end completes the cursor."""
        assert self._pipeline is not None
        cursor = self._connection.execute(_adapt(statement, self._schema), values or None)
        # As `Pipeline.sync`, without the wait. Only after that, and until another message, does the server limit how
        # long a transaction may be idle: a process that is stopped must not keep the journal's lock.
        self._connection.pgconn.pipeline_sync()
        self._pipeline.result_queue.append(None)
        return cursor

    @contextlib.contextmanager
    def pipeline(self) -> Iterator[None]:
        """Allow `send` during the block. Its end waits for all that was sent, and raises the first error."""
        with self.limited(), self._connection.pipeline() as pipeline:
            self._pipeline = pipeline
            try:
                yield
            finally:
                self._pipeline = None

    def execute_briefly(self, statements: Iterable[tuple[str, Sequence[object]]], *, seconds: float) -> list[Any]:
        """Execute statements in one transaction and one round trip, each in this time. Return the rows of the last.

        They are durable when the next transaction is: a crash of the server before that may undo them.
        """
        with self.limited(), self._connection.pipeline():
            self.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            self.execute(f"SET LOCAL statement_timeout = '{seconds}s'")
            self.execute("SET LOCAL synchronous_commit = off")
            *_, last = [self.execute(statement, values) for statement, values in statements]
            self.execute("COMMIT")
        return last.fetchall()

    def execute_script(self, script: str) -> list[list[Any]]:
        """Execute several statements in one round trip, and return the rows of each that has rows."""
        with self.limited():
            cursor, found = self.execute(script), list[list[Any]]()
        while True:
            if cursor.description is not None:
                found.append(cursor.fetchall())
            if not cursor.nextset():
                return found

    def connect_again(self) -> PostgresConnection:
        """Return another connection to the same database, for this thread."""
        return PostgresConnection(self.url, draw_wait=self._draw_wait)

    @property
    def is_lost(self) -> bool:
        """Whether the connection is closed or broken."""
        return self._connection.closed or self._connection.broken

    def translate(self, error: Exception) -> EscrowctlError | None:
        """See `tables.database.Database`."""
        if isinstance(error, psycopg.Error):
            return unusable_database(self.location, error)
        if isinstance(error, DECODING_ERRORS):
            return damaged(self.location, "a stored value does not match its record")
        return None

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        self.warnings += [str(notice.message_primary)] if notice.severity_nonlocalized == "WARNING" else []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def unusable_database(location: str, error: psycopg.Error) -> EscrowctlError:
    """Return the error for a journal whose database cannot be used, or refused a statement."""
    cause = error.diag.message_primary or next(iter(str(error).splitlines()), "") or type(error).__name__
    if isinstance(error, psycopg.errors.QueryCanceled):
        cause = "a statement took too long, and was cancelled"
    # Only libpq itself gives no state (SQLSTATE): it has no connection.
    return unusable(location, cause.rstrip("."), reason=Reason.NOT_CONNECTED if error.sqlstate is None else "")


@contextlib.contextmanager
def translating_errors(location: str) -> Iterator[None]:
    """Raise `ErrorCode.JOURNAL_UNUSABLE` in place of psycopg's errors."""
    try:
        yield
    except psycopg.Error as error:
        raise unusable_database(location, error) from error


@functools.lru_cache(maxsize=512)
def _adapt(statement: str, schema: str) -> bytes:
    """Return a statement of the tables in PostgreSQL's words: psycopg would take longer to number the values."""
    first, *others = statement.replace("main.", f'"{schema}".').split("?")
    return "".join((first, *(f"${number}{text}" for number, text in enumerate(others, start=1)))).encode()
