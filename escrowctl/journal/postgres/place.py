"""A journal in a PostgreSQL database: find it, open it, and create its tables."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import sql

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.files import make_private_folder
from escrowctl.journal.postgres.connection import PostgresConnection, unusable_database
from escrowctl.journal.postgres.health import Health, examine
from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.postgres.storage import FORMAT_VERSION, PostgresStorage
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.storage import Storage
from escrowctl.journal_url import JournalUrl
from escrowctl.runtime import Clock


class Step(NamedTuple):
    """One step of creating a journal: the file that it is in, its purpose, and its SQL."""

    file: str
    purpose: str
    script: str


class PostgresPlace:
    """The database and the name of a journal; see `storage.JournalPlace`. `create` alone creates the tables.

    `operator` uses the journal, and an attempt of a write takes at most `attempt_seconds`.
    """

    format_version = FORMAT_VERSION
    is_shared = True

    def __init__(self, url: JournalUrl, folder: Path, operator: str = "", attempt_seconds: float = 60) -> None:
        self.url = url
        self.folder = folder
        self._operator = operator
        self._attempt_seconds = attempt_seconds
        # Another database may have a journal of the same name.
        self.head_path = folder / "shared" / f"{url.name}-{hashlib.sha256(url.url.encode()).hexdigest()[:16]}.head"
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

    @property
    def exists(self) -> bool:
        """See `storage.JournalPlace`."""
        return self.find_id() is not None

    def find_id(self) -> str | None:
        """See `storage.JournalPlace`. Once known, the id is kept: it never changes."""
        if self._journal_id is None:
            try:
                ((journal_id,),) = self._connect().execute("SELECT id FROM main.journal").fetchall()
            except psycopg.errors.UndefinedTable:
                return None
            except psycopg.Error as error:
                raise unusable_database(self.location, error) from error
            self._journal_id = str(journal_id)
        return self._journal_id

    def open(self, *, now: Clock, reading: bool) -> tuple[Storage, Leases]:
        """See `storage.JournalPlace`. Raises `ErrorCode.JOURNAL_UNUSABLE` if there is no journal to write to."""
        leases = Leases(self.url, self._operator, self._attempt_seconds)
        if not self.exists and reading:
            return SqliteStorage.open(self.head_path.with_suffix(".none"), now=now, reading=True), leases
        if not self.exists:
            message = f"there is no journal {self.location}."
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, reason=Reason.NOT_CREATED)
        if not reading:
            make_private_folder(self.head_path.parent)
        database, self._database = self._connect(), None
        return self._make_storage(database, leases), leases

    def warn_of_locks(self) -> str | None:
        """See `storage.JournalPlace`: all who use the database see its locks."""
        return None

    def examine(self, now: Clock) -> Health:
        """Return a description of the server, and its problems. Raises `ErrorCode.JOURNAL_UNUSABLE`."""
        try:
            return examine(self._connect(), now)
        except psycopg.Error as error:
            raise unusable_database(self.location, error) from error

    def create(self, admin: str | None) -> None:
        """Create the tables in one transaction, with the connection of the service `admin` of libpq (pg_service.conf).

        None: with the connection that writes, which then owns the tables. Raises `ErrorCode.JOURNAL_UNUSABLE`.
        """
        steps = self.plan(with_roles=admin is not None)
        try:
            with psycopg.connect(f"service={admin}" if admin is not None else self.url.url) as database:
                for step in steps:
                    database.execute(step.script.encode())
        except psycopg.Error as error:
            raise unusable_database(self.location, error) from error

    def plan(self, *, with_roles: bool) -> list[Step]:
        """Return the steps that create the tables and, `with_roles`, the roles and their rights."""
        names = {"main": self.url.name}
        if with_roles:
            names |= {"main_owner": f"{self.url.name}_owner", "main_writer": self._find_writer()}
        steps = []
        for file in ("001.sql", "roles.sql")[: 2 if with_roles else 1]:
            script = (resources.files("escrowctl.journal.postgres") / "schema" / file).read_text("utf-8")
            purpose = script.partition("-- ")[2].partition(".")[0]
            steps.append(Step(file, purpose, re.sub(r"\bmain\w*", lambda found: _quote(names[found[0]]), script)))
        return steps

    def with_name(self, name: str) -> PostgresPlace:
        """Return the place of another journal in the same database. Raises ValueError; see `parse_journal_url`."""
        return PostgresPlace(self.url.with_name(name), self.folder, self._operator, self._attempt_seconds)

    def _find_writer(self) -> str:
        try:
            ((writer,),) = self._connect().execute("SELECT current_user").fetchall()
        except psycopg.Error as error:
            raise unusable_database(self.location, error) from error
        return str(writer)

    def _connect(self) -> PostgresConnection:
        """Return the connection that the storage will have."""
        if self._database is None or self._database.is_lost:
            self._database = PostgresConnection(self.url)
        return self._database

    def _make_storage(self, database: PostgresConnection, leases: Leases) -> PostgresStorage:
        return PostgresStorage(self.url, lambda: leases.sender, database)


def _quote(name: str) -> str:
    return sql.Identifier(name).as_string()
