"""The journal's storage: one SQLite file in rollback mode, every commit durable.

TRUNCATE mode with synchronous=EXTRA costs under a millisecond a commit and is safe for several
processes with the SQLite versions in the field (WAL is not before 3.51.3, and a lost unlink of a
DELETE-mode journal could roll a commit back). The tables are `journal.schema`'s. Whatever is read is
checked as it is read: a damaged file is an error, never an answer.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from escrowctl.errors import EscrowctlError
from escrowctl.journal import rows, schema
from escrowctl.journal.chain import EMPTY, Head, Kind, Link, Record, canonical
from escrowctl.journal.entries import Entry, Intent, Selection, Verdict
from escrowctl.journal.failures import behind, damaged, decoding, translated, unusable
from escrowctl.journal.head import HeadFile, KeptHead, UnreadableHeadError
from escrowctl.journal.opening import keep_copy, open_database, open_database_to_read
from escrowctl.journal.rows import Columns

_TREES = ("guards", "guards_again")


class Store:
    """One open journal file. Every method may raise EscrowctlError `journal_unusable` (exit 17)."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self.head_file = HeadFile(path.with_suffix(".head"))
        self._appended: Head | None = None
        self._failed = False
        self._db = database
        self._db.row_factory = sqlite3.Row

    @classmethod
    def open(cls, path: Path, *, made_at: str, reading: bool = False) -> "Store":
        """Open the file, made where it is missing, and bring it up to date.

        `reading`: a missing file reads as an empty journal and is not made, and one that cannot be
        written is read all the same.
        """
        with decoding(path):
            database = open_database_to_read(path) if reading else open_database(path)
            store = cls(path, database)
            store._prepare(made_at)
            if not reading:
                store._make_head()
            return store

    def copy(self) -> "Store":
        """Return the journal as it stands now in a temporary place of its own, to be looked at; `close` it.

        It is copied page by page, so that damage is in the copy as it is in the file.
        """
        database = sqlite3.connect("", isolation_level=None)
        with self._translated():
            self._db.backup(database)
        return Store(self.path, database)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block did, durably, before the next line runs; or nothing of it."""
        if self._failed:
            # After a failed sync the next one may succeed for pages that never reached the disk.
            raise unusable(self.path, "an earlier commit of this process failed")
        with self._translated():
            self._appended = None
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._roll_back()
                raise
            self._commit()
        self._keep_head()

    @property
    def journal_id(self) -> str:
        """The journal's own id, made with the file."""
        with self._decoding():
            return str(self._db.execute("SELECT id FROM journal").fetchone()["id"])

    # The chain

    def head(self) -> Head:
        """Return where the chain ends."""
        last = self._links("1", (), order="DESC", limit=1)
        return Head(last[0].record.sequence, last[0].digest) if last else EMPTY

    def links(self, *, after: int, limit: int) -> list[Link]:
        """Return up to `limit` records of the chain, those after a sequence."""
        return self._links("sequence > ?", (after,), order="ASC", limit=limit)

    def links_of(self, number: int) -> list[Link]:
        """Return the records of one entry."""
        return self._links("entry = ?", (number,), order="ASC", limit=-1)

    def check_tail(self) -> None:
        """Raise `journal_unusable` where the chain's end is damaged, or older than it once was."""
        last = self._links("1", (), order="DESC", limit=2)
        before = Head(last[1].record.sequence, last[1].digest) if len(last) > 1 else EMPTY
        with self._decoding():
            if last and not last[0].follows(before):
                raise self._damaged(f"record {last[0].record.sequence} does not follow from the one before")
            row = self._db.execute(
                "SELECT (SELECT max(number) FROM entries) AS number, (SELECT max(entry) FROM records) AS entry"
            ).fetchone()
        if row["number"] != row["entry"]:
            raise self._damaged("its entries and its records do not end with the same one")
        if why := self.behind_head_file():
            raise behind(self.path, why)

    def behind_head_file(self) -> str | None:
        """Return in what the chain contradicts the head that was kept beside it; None where it does not."""
        try:
            with self._translated():
                kept = self.head_file.read()
        except UnreadableHeadError:
            return f"{self.head_file.path.name} next to it is not a head file"
        if kept is None:
            return None if self.head() == EMPTY else f"{self.head_file.path.name} next to it is missing"
        if kept.journal_id != self.journal_id:
            return f"{self.head_file.path.name} next to it is of another journal, {kept.journal_id}"
        return self.contradiction(kept.head)

    def refuse_foreign_head(self) -> None:
        """Raise `ErrorCode.JOURNAL_UNUSABLE` where the head file is of another journal: that one is missing here."""
        with contextlib.suppress(UnreadableHeadError), self._translated():
            kept = self.head_file.read()
            if kept is not None and kept.journal_id != self.journal_id:
                hint = (f"bring journal {kept.journal_id} back", f"or, after a look, remove {self.head_file.path}")
                raise unusable(self.path, f"the head next to it is of journal {kept.journal_id}", hint=hint)

    def contradiction(self, head: Head) -> str | None:
        """Return in what the chain contradicts one of its earlier heads; None where it holds it."""
        last = self.head().sequence
        if head.sequence > last:
            return f"it ends with record {last}, and had {head.sequence}: it is an older copy, or was cut"
        if head == EMPTY:
            return None
        found = self._links("sequence = ?", (head.sequence,), order="ASC", limit=1)
        if not found or found[0].digest != head.digest:
            return f"record {head.sequence} is not the one that once stood there"
        return None

    # Writing, only inside `transaction`

    def next_number(self) -> int:
        """Return the number that the next new entry gets."""
        row = self._db.execute("SELECT coalesce(max(number), 0) + 1 AS next FROM entries").fetchone()
        return int(row["next"])

    def add_intent(self, number: int, intent: Intent, *, attempt: int, request_id: str, at: str) -> None:
        """Record an intent, new or the next attempt of an entry."""
        self._add(number, Kind.INTENT, at, rows.facts_of_intent(intent, attempt=attempt, request_id=request_id))

    def add_verdict(self, number: int, verdict: Verdict, *, at: str) -> None:
        """Record what became of an entry's last attempt."""
        self._add(number, Kind.VERDICT, at, rows.facts_of_verdict(verdict))

    def add_decision(self, number: int, verdict: Verdict, *, operator: str, reason: str, at: str) -> None:
        """Record an operator's word on an entry."""
        self._add(number, Kind.DECISION, at, rows.facts_of_verdict(verdict) | {"operator": operator, "reason": reason})

    def add_import(self, number: int, columns: Columns, *, at: str) -> None:
        """Record an entry taken over from another journal, as it stood there."""
        self._add(number, Kind.IMPORT, at, columns)

    def add_link(self, link: Link) -> None:
        """Append a record of this very journal, brought back from a copy; raises where it does not follow."""
        if not link.follows(self.head()):
            raise self._damaged(f"record {link.record.sequence} does not follow from the one before")
        record = link.record
        with self._decoding():
            self._insert(link)
            self._change(record.entry, record.kind, record.at, json.loads(record.facts))

    def take_identity(self, journal_id: str) -> None:
        """Become the journal of that id."""
        self._db.execute("UPDATE journal SET id = ?", (journal_id,))

    # Looking

    def by_number(self, number: int) -> Entry | None:
        """Return one entry with its history."""
        found = self.rows_where("number = ?", (number,), limit=1)
        if not found:
            return None
        with self._decoding():
            events = (
                rows.event_of(link.record.kind, link.record.at, json.loads(link.record.facts))
                for link in self.links_of(number)
            )
            return rows.entry_of(*found[0], tuple(events))

    def by_key(self, names: Iterable[str], idempotency_key: str) -> list[Entry]:
        """Return the entries that used an idempotency key at a service, under any of its names, newest first."""
        return self._standing(rows.key_tokens(names, idempotency_key))

    def alike(self, intent: Intent) -> list[Entry]:
        """Return the entries that are the same write and stand against another, newest first."""
        return self._standing(rows.likeness_tokens(intent.names, intent.operation, intent.likenesses))

    def by_reference(self, names: Iterable[str], reference: str) -> list[Entry]:
        """Return the entries under a reference that may have happened, newest first."""
        return self._standing(rows.reference_tokens(names, reference))

    def by_result(self, result_id: str) -> list[Entry]:
        """Return the entries that made a thing under this id, newest first."""
        return [self._entry(*found) for found in self.rows_where("result_id = ?", (result_id,))]

    def by_origin(self, origin: str) -> list[Entry]:
        """Return the entries that were imported from that journal and entry."""
        return [self._entry(*found) for found in self.rows_where("origin = ?", (origin,))]

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """Return the newest entries of a selection, newest first; read whole and closed before anyone prints.

        `before`: only those with a lower number.
        """
        condition, values = selection.condition()
        if before is not None:
            condition, values = f"({condition}) AND number < ?", (*values, before)
        return [self._entry(*found) for found in self.rows_where(condition, values, limit=selection.limit)]

    def page(self, *, after: int, limit: int) -> list[tuple[int, Columns]]:
        """Return up to `limit` entries as rows, oldest first, those after a number."""
        return self.rows_where("number > ?", (after,), limit=limit, order="ASC")

    def rows_where(
        self, where: str, values: tuple[object, ...], *, limit: int = -1, order: str = "DESC"
    ) -> list[tuple[int, Columns]]:
        """Return entries as rows by an SQL condition of the journal's own, newest first; values are bound."""
        query = f"SELECT * FROM entries WHERE {where} ORDER BY number {order} LIMIT ?"
        with self._decoding():
            found = self._db.execute(query, (*values, limit)).fetchall()
        return [self._unsealed(row) for row in found]

    def stands(self, number: int, tokens: frozenset[int]) -> bool:
        """Whether an entry is kept under each of the tokens, in both trees."""
        return all(number in self._guarding(tree, token) for tree in _TREES for token in tokens)

    def count_guards(self) -> int:
        """Return how many tokens are kept; where the two trees differ, the greater number."""
        with self._translated():
            return max(int(self._db.execute(f"SELECT count(*) FROM {tree}").fetchone()[0]) for tree in _TREES)

    def find_damage(self) -> str | None:
        """Return what SQLite itself finds wrong with the file's structure; None: nothing."""
        with self._translated():
            said = str(self._db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if said == "ok" else said

    # Inside

    def _prepare(self, made_at: str) -> None:
        self._db.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
        self._db.execute("PRAGMA synchronous = EXTRA")
        version = schema.version_of(self._db)
        if version > schema.VERSION:
            raise unusable(self.path, f"it was made by a newer escrowctl (format {version})")
        if version < schema.VERSION:
            with self.transaction():
                self._bring_up_to_date(made_at)

    def _make_head(self) -> None:
        """Create the head file of a journal without records: with records, a missing one shows a loss."""
        if not self.head_file.is_there:
            # Alone, so that no record comes in between.
            with self.transaction():
                if self.head() == EMPTY:
                    self.head_file.replace(KeptHead(self.journal_id, EMPTY))

    def _bring_up_to_date(self, made_at: str) -> None:
        # Asked again: another process may have been first.
        version = schema.version_of(self._db)
        if version == 0:
            schema.make_tables(self._db, made_at=made_at)
        elif version < schema.VERSION:
            keep_copy(self.path)
            if version < schema.FIRST_WITH_HEAD and not self.head_file.is_there:
                self.head_file.replace(KeptHead(self.journal_id, self.head()))
            schema.extend_tables(self._db, version=version)
            for row in self._db.execute("SELECT * FROM entries WHERE seal = ''").fetchall():
                columns = dict(row)
                number = columns.pop("number")
                del columns["seal"]
                self._put(number, columns, before={})

    def _add(self, number: int, kind: Kind, at: str, facts: Columns) -> None:
        last = self.head()
        record = Record(last.sequence + 1, number, kind.value, at, canonical(facts))
        self._insert(Link(record, record.digest(last.digest)))
        self._change(number, kind, at, facts)

    def _insert(self, link: Link) -> None:
        record = link.record
        self._db.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
            (record.sequence, record.entry, record.kind, record.at, record.facts, link.digest),
        )
        self._appended = Head(record.sequence, link.digest)

    def _change(self, number: int, kind: str, at: str, facts: Columns) -> None:
        """Derive the entry's row from a record."""
        found = self.rows_where("number = ?", (number,), limit=1)
        before = found[0][1] if found else {}
        self._put(number, rows.apply(before, kind, at, facts), before=before)

    def _put(self, number: int, columns: Columns, *, before: Columns) -> None:
        row = {"number": number, **columns, "seal": rows.seal_of(number, columns)}
        names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        changes = ", ".join(f"{name} = excluded.{name}" for name in row)
        # The column names are this module's own; values are bound.
        statement = f"INSERT INTO entries ({names}) VALUES ({places}) ON CONFLICT (number) DO UPDATE SET {changes}"
        self._db.execute(statement, row)
        stood = rows.tokens_of(before) if before else frozenset()
        stands = rows.tokens_of(columns)
        for tree in _TREES:
            gone, new = ([(token, number) for token in tokens] for tokens in (stood - stands, stands - stood))
            self._db.executemany(f"DELETE FROM {tree} WHERE token = ? AND entry = ?", gone)
            self._db.executemany(f"INSERT INTO {tree} VALUES (?, ?)", new)

    def _standing(self, tokens: frozenset[int]) -> list[Entry]:
        """Return the entries that stand under any of the tokens, newest first; both trees must name the same."""
        numbers: set[int] = set()
        for token in tokens:
            once, again = (self._guarding(tree, token) for tree in _TREES)
            if once != again:
                raise self._damaged("its indexes do not agree on what stands against this write")
            numbers |= once
        found = [
            one for number in sorted(numbers, reverse=True) for one in self.rows_where("number = ?", (number,), limit=1)
        ]
        with self._decoding():
            standing = [number for number, row in found if tokens & rows.tokens_of(row)]
        if len(standing) != len(numbers):
            raise self._damaged("an entry that stands against this write is not there any more")
        return [self._entry(*one) for one in found]

    def _guarding(self, tree: str, token: int) -> set[int]:
        with self._decoding():
            found = self._db.execute(f"SELECT entry FROM {tree} WHERE token = ?", (token,)).fetchall()
        return {row["entry"] for row in found}

    def _unsealed(self, row: sqlite3.Row) -> tuple[int, Columns]:
        with self._decoding():
            columns: dict[str, Any] = dict(row)
            number, seal = columns.pop("number"), columns.pop("seal")
            if rows.seal_of(number, columns) != seal:
                raise self._damaged(f"entry j{number} is not what was recorded")
        return number, columns

    def _entry(self, number: int, columns: Columns) -> Entry:
        with self._decoding():
            return rows.entry_of(number, columns)

    def _links(self, where: str, values: tuple[object, ...], *, order: str, limit: int) -> list[Link]:
        # As in `_select`.
        query = f"SELECT * FROM records WHERE {where} ORDER BY sequence {order} LIMIT ?"
        with self._decoding():
            return [_link_of(row) for row in self._db.execute(query, (*values, limit)).fetchall()]

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._failed = error.sqlite_errorcode != sqlite3.SQLITE_BUSY
            self._roll_back()
            raise

    def _keep_head(self) -> None:
        if self._appended is not None:
            self.head_file.keep(KeptHead(self.journal_id, self._appended))

    def _roll_back(self) -> None:
        self._appended = None
        # A failed COMMIT may already have rolled back; the first error is the one to tell.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self.path)

    def _decoding(self) -> AbstractContextManager[None]:
        return decoding(self.path)

    def _damaged(self, why: str) -> EscrowctlError:
        return damaged(self.path, why)


def _link_of(row: sqlite3.Row) -> Link:
    """Return a row of `records`; raises TypeError where a damaged page holds another type than the table says."""
    sequence, entry, *texts = tuple(row)
    if not (isinstance(sequence, int) and isinstance(entry, int) and all(isinstance(text, str) for text in texts)):
        raise TypeError(sequence)
    return Link(Record(*tuple(row)[:-1]), row["digest"])
