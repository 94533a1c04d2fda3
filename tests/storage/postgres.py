"""A PostgreSQL server for the tests, on loopback, and journals in it whose clock a test can set."""

import contextlib
import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest
from wire_server import keep_port

from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.postgres.place import PostgresPlace
from escrowctl.journal.postgres.storage import PostgresStorage
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.storage import Storage
from escrowctl.journal.tables.transaction import TableTransaction
from escrowctl.journal_url import JournalUrl, parse_journal_url
from escrowctl.runtime import Clock


def find_programs() -> Path:
    """Return the folder of the newest server on this machine; skip the test if there is none that can run here."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip("no PostgreSQL server is installed (Debian package postgresql)")
    with contextlib.suppress(KeyError):
        pwd.getpwuid(os.getuid())
        return found[-1].parent
    return pytest.skip("this user has no name, and PostgreSQL needs one")


POOLER = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_login_retry = 1
logfile = {folder}/pooler.log
"""


class Server:
    """One server. `url` is that of its database, in which each journal is a schema.

    If ESCROWCTL_TEST_POOLER is set, journals are reached through PgBouncer in transaction mode (`journals_url`).
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        # The server refuses to run as root.
        self._as_user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        else:
            self._as_user = []
        # Another process takes no port that is bound, listening or not.
        self._ports = [keep_port(), keep_port()]
        self.port, self._pooler_port = (kept.getsockname()[1] for kept in self._ports)
        self.url = self.journals_url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._data = str(self.folder / "data")
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        self._pooler: subprocess.Popen[bytes] | None = None
        self.start()
        self._pooler = self._start_pooler() if os.environ.get("ESCROWCTL_TEST_POOLER") else None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c max_connections=200"
        # No default of a server may matter.
        settings += " -c default_transaction_isolation=serializable -c synchronous_commit=off"
        self._run("pg_ctl", "-D", self._data, "-l", str(self.folder / "log"), "-o", settings, "-w", "start")
        self._wait()

    def stop(self, how: str) -> None:
        """Stop the server: `fast`, or `immediate`, which is like a crash."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def create_journal(self, name: str) -> JournalUrl:
        """Create the tables of a journal with a single role, and return its URL."""
        url = parse_journal_url(f"{self.journals_url}?journal={name}")
        PostgresPlace(url, self.folder).create(None)
        return url

    def close(self) -> None:
        if self._pooler is not None:
            self._pooler.kill()
            self._pooler.wait()
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        for kept in self._ports:
            kept.close()
        shutil.rmtree(self.folder)

    def _start_pooler(self) -> subprocess.Popen[bytes]:
        settings = self.folder / "pooler.ini"
        settings.write_text(POOLER.format(server=self.port, port=self._pooler_port, folder=self.folder))
        if (program := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")) is None:
            pytest.skip("pgbouncer is not installed (Debian package)")
        process = subprocess.Popen([*self._as_user, program, "-q", settings])
        self.journals_url = self.url.replace(str(self.port), str(self._pooler_port))
        self._wait()
        return process

    def _wait(self) -> None:
        """Wait until the server, or the pooler, answers."""
        while True:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.journals_url) as database:
                database.execute("SELECT 1")
                return
            time.sleep(0.05)

    def _run(self, program: str, *words: str) -> None:
        log = self.folder / "setup.log"
        with log.open("ab") as output:
            subprocess.run(
                [*self._as_user, self._programs / program, *words],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True, timeout=30,
            )  # fmt: skip


class ClockedStorage(PostgresStorage):
    """A storage whose clock is the test's, by the address of the journal."""

    clocks: ClassVar[dict[JournalUrl, Clock]] = {}

    def _begin(self, script: str, keys: Collection[int] = ()) -> TableTransaction:
        transaction = super()._begin(script, keys)
        transaction.now = cache(self.clocks[self._db.url])  # in place of the database's
        return transaction


class ClockedPlace(PostgresPlace):
    """A place whose storages have the clock with which they are opened."""

    def open(self, *, now: Clock, reading: bool) -> tuple[Storage, Leases]:
        ClockedStorage.clocks[self.url] = now
        storage, locks = super().open(now=now, reading=reading)
        if isinstance(storage, PostgresStorage):
            storage.__class__ = ClockedStorage
        return storage, locks


def new_name() -> str:
    """Return the name of a journal that does not exist yet."""
    return f"j{time.monotonic_ns()}"


class TestPlace(ClockedPlace):
    """The journal of a test's folder, in the place of a file: opening it for writing creates it."""

    __test__ = False
    is_shared = False

    @cached_property
    def head_path(self) -> Path:
        return self.folder / "journal.head"

    def __init__(self, server: Server, folder: Path) -> None:
        name = f"j{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        super().__init__(parse_journal_url(f"{server.journals_url}?journal={name}"), folder)

    def open(self, *, now: Clock, reading: bool) -> tuple[Storage, Leases]:
        if reading and not self.exists:
            return SqliteStorage.open(self.folder / "none", now=now, reading=True), Leases(self.url)
        if not self.exists:
            self.create(None)
        return super().open(now=now, reading=reading)


def execute(database: psycopg.Connection, place: PostgresPlace, statement: str) -> None:
    database.execute(statement.replace("main.", f"{place.url.name}.").encode())


def lapse_all(database: psycopg.Connection, place: PostgresPlace) -> None:
    execute(database, place, "UPDATE main.senders SET expires_at = clock_timestamp() - interval '1 second'")
