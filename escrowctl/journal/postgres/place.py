"""A journal in a PostgreSQL database: find it, open it, and create its tables."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from escrowctl.contract.identifiers import UUID_PATTERN
from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.files import make_private_folder, read_regular
from escrowctl.journal.chain import ChainRecord
from escrowctl.journal.postgres.connection import LimitedConnection, PostgresConnection, translating_errors
from escrowctl.journal.postgres.health import Health, examine
from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.postgres.storage import PostgresStorage
from escrowctl.journal.shared_writes import keep_file
from escrowctl.journal.storage import Storage, damaged, unusable
from escrowctl.journal.witness import Witness
from escrowctl.journal_url import JournalUrl
from escrowctl.runtime import Clock, DrawWait

_MAX_ID_BYTES = 100
_MAX_NAME_CHARS = 63
"""The longest name in PostgreSQL (postgresql.org/docs/current/limits.html)."""

_WHICH_DATABASE = "SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())"


class Step(NamedTuple):
    """One step of creating a journal: the file that it is in, its purpose, and its SQL."""

    file: str
    purpose: str
    script: str


class PostgresPlace:
    """The database and the name of a journal; see `storage.JournalPlace`. `create` alone creates the tables.

    `operator` uses the journal, and an attempt of a write takes at most `attempt_seconds`. `draw_wait` is called while
    a command waits for the database.
    """

    is_shared = True

    def __init__(
        self,
        url: JournalUrl,
        folder: Path,
        operator: str = "",
        attempt_seconds: float = 60,
        draw_wait: DrawWait | None = None,
    ) -> None:
        self.url = url
        self.folder = folder
        self._operator = operator
        self._attempt_seconds = attempt_seconds
        self._draw_wait = draw_wait
        # Another database may have a journal of the same name.
        self._id_path = folder / "shared" / f"{url.name}-{hashlib.sha256(url.url.encode()).hexdigest()[:16]}.id"
        self._database: PostgresConnection | None = None
        self._journal_id: str | None = None

    def __del__(self) -> None:
        """Close the connection, if no storage has it."""
        if self._database is not None:
            self._database.close()

    @property
    def location(self) -> str:
        """The journal's name and the database."""
        return str(self.url)

    @cached_property
    def head_path(self) -> Path:
        """See `storage.JournalPlace`: the saved head of the journal that this URL has led to, or else leads to."""
        try:
            journal_id = read_regular(self._id_path, limit=_MAX_ID_BYTES)[0].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return self._id_path.with_name(f"{self.find_id()}.head")
        except OSError as error:
            raise unusable(str(self._id_path), error.strerror or str(error), reason="") from error
        if not re.fullmatch(UUID_PATTERN, journal_id):
            # The journal itself may be valid: no hint to replace it.
            raise unusable(str(self._id_path), "it should contain the journal's id", reason="")
        return self._id_path.with_name(f"{journal_id}.head")

    @property
    def exists(self) -> bool:
        """See `storage.JournalPlace`."""
        return self.find_id() is not None

    def find_id(self) -> str | None:
        """See `storage.JournalPlace`. Once known, the id is kept: it never changes."""
        if self._journal_id is None:
            with translating_errors(self.location):
                try:
                    found = self._connect().execute("SELECT id FROM main.journal").fetchall()
                except psycopg.errors.UndefinedTable:
                    return None
            if len(found) != 1:
                raise damaged(self.location, "its table journal should have one row")
            self._journal_id = str(found[0][0])
        return self._journal_id

    def open(self, *, now: Clock, reading: bool) -> tuple[Storage, Leases]:  # noqa: ARG002 - the database has a clock
        """See `storage.JournalPlace`. Raises `ErrorCode.JOURNAL_UNUSABLE` if there is no such journal."""
        leases = Leases(self.url, self._operator, self._attempt_seconds)
        if not self.exists:
            message = f"there is no journal {self.location}."
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, reason=Reason.NOT_CREATED)
        if not (reading or self._id_path.exists()):
            make_private_folder(self._id_path.parent)
            keep_file(self._id_path, self.find_id() or "")
        database, self._database = self._connect(), None
        return PostgresStorage(database, lambda: leases.sender), leases

    def warn_of_locks(self) -> str | None:
        """See `storage.JournalPlace`: all who use the database see its locks."""
        return None

    def examine(self, now: Clock) -> Health:
        """Return a description of the server, and its problems. Raises `ErrorCode.JOURNAL_UNUSABLE`."""
        with translating_errors(self.location):
            return examine(self._connect(), now)

    def create(self, admin: str | None, first: ChainRecord | None = None) -> str:
        """Create the tables in one transaction, with the connection of the service `admin` of libpq (pg_service.conf).

        None: with the connection that writes, which then owns the tables. `first` is its first record. Return the
        journal's id. Raises `ErrorCode.JOURNAL_UNUSABLE`, also if the service leads to another database than the URL.
        """
        if self._id_path.exists():
            Witness(self).refuse_lost_journal()
        tables, *roles = self.plan(with_roles=admin is not None)
        where = f"service={admin}" if admin is not None else self.url.url
        name = f"{self.location} ({where})" if admin is not None else self.location
        with translating_errors(name), LimitedConnection.connect(where, client_encoding="utf8") as database:
            if database.execute(_WHICH_DATABASE).fetchone() != self._ask(_WHICH_DATABASE):
                message = f"the journal {self.location} was not created: service {admin} leads to another database."
                raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message)
            database.execute("SET LOCAL synchronous_commit = on")
            database.execute("SELECT pg_advisory_xact_lock(0)")  # several may create it at once
            if (found := self.find_id()) is not None:
                return found
            database.execute(tables.script.encode())
            if first is not None:
                store = f"INSERT INTO {_quote(self.url.name)}.records VALUES (%s, %s, %s, %s, %s, %s)".encode()
                database.execute(store, (*first[:-1], bytes.fromhex(first.digest)))
            for step in roles:
                database.execute(step.script.encode())
        journal_id = self.find_id()
        assert journal_id is not None, "it was created in this database"
        return journal_id

    def plan(self, *, with_roles: bool) -> list[Step]:
        """Return the steps that create the tables and, `with_roles`, the roles and their rights."""
        names = {"main": self.url.name}
        if with_roles:
            writer, database = self._ask("SELECT current_user, current_database()")
            # All databases of a server have the same roles.
            names |= {"main_owner": f"{self.url.name}_{database}_owner"[:_MAX_NAME_CHARS], "main_writer": writer}
        steps = []
        for file in ("001.sql", "roles.sql")[: 2 if with_roles else 1]:
            script = (resources.files("escrowctl.journal.postgres") / "schema" / file).read_text("utf-8")
            purpose = script.partition("-- ")[2].partition(".")[0]
            steps.append(Step(file, purpose, re.sub(r"\bmain\w*", lambda found: _quote(names[found[0]]), script)))
        return steps

    def with_name(self, name: str) -> PostgresPlace:
        """Return the place of another journal in the same database. Raises ValueError; see `parse_journal_url`."""
        url = self.url.with_name(name)
        return PostgresPlace(url, self.folder, self._operator, self._attempt_seconds, self._draw_wait)

    def _ask(self, query: str) -> tuple[Any, ...]:
        """Return the row of a query, by the user who writes. Raises `ErrorCode.JOURNAL_UNUSABLE`."""
        with translating_errors(self.location):
            ((*row,),) = self._connect().execute(query).fetchall()
        return tuple(row)

    def _connect(self) -> PostgresConnection:
        """Return the connection that the storage will have."""
        if self._database is None or self._database.is_lost:
            self._database = PostgresConnection(self.url, draw_wait=self._draw_wait)
        return self._database


def _quote(name: str) -> str:
    return sql.Identifier(name).as_string()
