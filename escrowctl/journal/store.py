"""The journal's storage: one SQLite file in rollback mode, every commit durable.

TRUNCATE mode with synchronous=EXTRA costs under a millisecond a commit and is safe for several
processes with the SQLite versions in the field (WAL is not before 3.51.3, and a lost unlink of a
DELETE-mode journal could roll a commit back). `records` is append-only and chained; `entries` holds
where each write stands now, derived from its records in the same transaction.
"""

import contextlib
import json
import os
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

from escrowctl.config.folders import make_private_folder
from escrowctl.contract.money import Money
from escrowctl.contract.number import Number
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending
from escrowctl.journal.chain import GENESIS, Record, canonical
from escrowctl.journal.entries import Entry, Event, Intent, State, Verdict

SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE journal (id TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest TEXT NOT NULL
) STRICT;
CREATE INDEX records_of_entry ON records (entry);
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  operation TEXT NOT NULL,
  service TEXT NOT NULL,
  profile TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT,
  idempotency_key TEXT NOT NULL,
  likeness TEXT NOT NULL,
  resource_id TEXT,
  amount TEXT,
  currency TEXT,
  reference TEXT,
  reason TEXT,
  despite TEXT NOT NULL,
  operator TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  sent_at TEXT NOT NULL,
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  http_status INTEGER,
  result_id TEXT,
  reply TEXT,
  may_repeat INTEGER NOT NULL,
  settled_at TEXT
) STRICT;
CREATE UNIQUE INDEX entries_by_key ON entries (service, idempotency_key);
CREATE INDEX entries_by_likeness ON entries (service, operation, likeness);
CREATE INDEX entries_by_reference ON entries (service, reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_by_state ON entries (state) WHERE state IN ('in_flight', 'unknown');
"""


class Store:
    """One open journal file. Every method may raise EscrowctlError `journal_unusable` (exit 17)."""

    def __init__(self, path: Path, *, made_at: str) -> None:
        self._path = path
        make_private_folder(path.parent)
        with self._translated():
            _make_private_file(path)
            # Autocommit: transactions are opened by hand, so that none is open by accident.
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            self._prepare(made_at)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block did, durably, before the next line runs; or nothing of it."""
        with self._translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._roll_back()
                raise
            self._commit()

    @property
    def journal_id(self) -> str:
        """The journal's own id, made with the file."""
        with self._translated():
            return str(self._db.execute("SELECT id FROM journal").fetchone()["id"])

    def next_number(self) -> int:
        """Return the number that the next new entry gets; only inside `transaction`."""
        row = self._db.execute("SELECT coalesce(max(number), 0) + 1 AS next FROM entries").fetchone()
        return int(row["next"])

    def add_intent(self, number: int, intent: Intent, *, attempt: int, request_id: str, at: str) -> None:
        """Record an intent, new or the next attempt of an entry; only inside `transaction`."""
        facts = _intent_columns(intent) | {"attempt": attempt, "request_id": request_id}
        self._append(number, "intent", at, facts)
        columns: dict[str, object] = {
            "number": number,
            **facts,
            "sent_at": at,
            "state": State.IN_FLIGHT,
            "detail": "",
            "may_repeat": 0,
        }
        names = ", ".join(columns)
        places = ", ".join(f":{name}" for name in columns)
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        # The column names are this module's own; values are bound.
        statement = f"INSERT INTO entries ({names}) VALUES ({places}) ON CONFLICT (number) DO UPDATE SET {changes}"  # noqa: S608
        self._db.execute(statement, columns)

    def add_verdict(self, number: int, verdict: Verdict, *, at: str) -> None:
        """Record what became of an entry's last attempt; only inside `transaction`."""
        facts: dict[str, object] = {
            "state": verdict.state,
            "detail": verdict.detail,
            "http_status": verdict.http_status,
            "result_id": verdict.result_id,
            "reply": verdict.reply,
            "may_repeat": int(verdict.may_repeat),
        }
        self._append(number, "verdict", at, facts)
        changes = ", ".join(f"{name} = :{name}" for name in facts)
        self._db.execute(
            f"UPDATE entries SET {changes}, settled_at = :at WHERE number = :number",  # noqa: S608 - as above
            facts | {"at": at, "number": number},
        )

    def by_number(self, number: int) -> Entry | None:
        """Return one entry with its history."""
        found = self._select("number = ?", (number,), limit=1)
        with self._translated():
            rows = self._db.execute("SELECT * FROM records WHERE entry = ? ORDER BY sequence", (number,)).fetchall()
        return _entry_from(found[0], tuple(_event_from(row) for row in rows)) if found else None

    def by_key(self, service: str, idempotency_key: str) -> Entry | None:
        """Return the entry that used an idempotency key at a service."""
        rows = self._select("service = ? AND idempotency_key = ?", (service, idempotency_key), limit=1)
        return _entry_from(rows[0]) if rows else None

    def alike(self, service: str, operation: str, likeness: str) -> list[Entry]:
        """Return the entries that are the same write and may have happened, newest first."""
        rows = self._select(
            "service = ? AND operation = ? AND likeness = ? AND state IN ('done', 'unknown', 'in_flight')",
            (service, operation, likeness),
            limit=1000,
        )
        return [_entry_from(row) for row in rows]

    def by_reference(self, service: str, reference: str) -> list[Entry]:
        """Return the entries under a reference that may have happened, newest first."""
        rows = self._select(
            "service = ? AND reference = ? AND state IN ('done', 'unknown', 'in_flight')",
            (service, reference),
            limit=1000,
        )
        return [_entry_from(row) for row in rows]

    def newest(self, limit: int) -> list[Entry]:
        """Return the newest entries, newest first; read whole and closed before anyone prints."""
        return [_entry_from(row) for row in self._select("1", (), limit=limit)]

    # Inside

    def _prepare(self, made_at: str) -> None:
        self._db.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
        self._db.execute("PRAGMA synchronous = EXTRA")
        version = self._version()
        if version == 0:
            version = self._make_schema(made_at)
        if version != SCHEMA_VERSION:
            raise self._unusable(f"it was made by a newer escrowctl (format {version})")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _make_schema(self, made_at: str) -> int:
        with self.transaction():
            if self._version() == 0:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute("INSERT INTO journal VALUES (?, ?)", (str(uuid.uuid4()), made_at))
                self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return SCHEMA_VERSION

    def _append(self, entry: int, kind: str, at: str, facts: dict[str, object]) -> None:
        last = self._db.execute("SELECT sequence, digest FROM records ORDER BY sequence DESC LIMIT 1").fetchone()
        sequence, previous = (last["sequence"] + 1, last["digest"]) if last else (1, GENESIS)
        record = Record(sequence, entry, kind, at, canonical(facts))
        self._db.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
            (sequence, entry, kind, at, record.facts, record.digest(previous)),
        )

    def _select(self, where: str, values: tuple[object, ...], *, limit: int) -> list[sqlite3.Row]:
        # `where` is this module's own text; values are bound.
        query = f"SELECT * FROM entries WHERE {where} ORDER BY number DESC LIMIT ?"  # noqa: S608
        with self._translated():
            return self._db.execute(query, (*values, limit)).fetchall()

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # A failed COMMIT may already have rolled back; the first error is the one to tell.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(str(error)) from error

    def _unusable(self, why: str) -> EscrowctlError:
        return EscrowctlError(
            ErrorCode.JOURNAL_UNUSABLE,
            f"the journal {self._path} cannot be used: {why}. {NOTHING_SENT}",
            hint="no write is sent without a journal; set ESCROWCTL_HOME to use a folder elsewhere",
            sending=Sending.NOT_SENT,
        )


def _make_private_file(path: Path) -> None:
    """Create the file 0600 before SQLite would with the umask's mode; its journal inherits the mode."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)


def _intent_columns(intent: Intent) -> dict[str, object]:
    return {
        "operation": intent.operation,
        "service": intent.service,
        "profile": intent.profile,
        "method": intent.method,
        "url": intent.url,
        "body": intent.body,
        "idempotency_key": intent.idempotency_key,
        "likeness": intent.likeness,
        "resource_id": intent.resource_id,
        "amount": intent.money.amount.text if intent.money else None,
        "currency": intent.money.currency if intent.money else None,
        "reference": intent.reference,
        "reason": intent.reason,
        "despite": ",".join(str(number) for number in intent.despite),
        "operator": intent.operator,
    }


def _entry_from(row: sqlite3.Row, history: tuple[Event, ...] = ()) -> Entry:
    money = Money(Number(row["amount"]), row["currency"]) if row["amount"] is not None else None
    intent = Intent(
        operation=row["operation"],
        service=row["service"],
        profile=row["profile"],
        method=row["method"],
        url=row["url"],
        body=row["body"],
        idempotency_key=row["idempotency_key"],
        likeness=row["likeness"],
        resource_id=row["resource_id"],
        money=money,
        reference=row["reference"],
        reason=row["reason"],
        despite=tuple(int(number) for number in row["despite"].split(",") if number),
        operator=row["operator"],
    )
    verdict = Verdict(
        State(row["state"]), row["detail"], row["http_status"], row["result_id"], row["reply"], bool(row["may_repeat"])
    )
    return Entry(
        number=row["number"],
        intent=intent,
        verdict=verdict,
        attempt=row["attempt"],
        request_id=row["request_id"],
        sent_at=row["sent_at"],
        settled_at=row["settled_at"],
        history=history,
    )


def _event_from(row: sqlite3.Row) -> Event:
    facts = json.loads(row["facts"])
    if row["kind"] == "intent":
        return Event(row["at"], State.IN_FLIGHT, f"attempt {facts['attempt']}")
    return Event(row["at"], State(facts["state"]), facts["detail"])
