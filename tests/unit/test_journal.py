"""The journal's chain and locks, checked from outside."""

import contextlib
import errno
import fcntl
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.fields import facts_of_intent, facts_of_settlement
from escrowctl.journal.imported import RecordLine
from escrowctl.journal.model import AttemptRequest, Intent, Settlement
from escrowctl.journal.opening import find_place, open_journal
from escrowctl.journal.sqlite.files import connect_to_read
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.journal.tables.reading import read_tail

AT, UUID = "2026-11-21T03:12:44.000Z", "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"


def intent(number: int) -> Intent:
    return Intent(
        operation="create_transaction",
        service="https://escrow.example.com",
        profile="acme",
        method="POST",
        url="https://escrow.example.com/api/v1/transactions",
        body=f'{{"amount":{number},"currency":"USD"}}',
        idempotency_key=f"key-{number}",
        fingerprint=f"fingerprint-{number}",
    )


@pytest.fixture
def journal_file(tmp_path: Path) -> Path:
    """A journal of three creates: done, refused, in flight."""
    journal = open_journal(find_place(tmp_path), now=lambda: NOW)
    entries = [journal.begin(AttemptRequest(intent(number), "r")) for number in (1, 2, 3)]
    journal.settle(entries[0], Settlement(Outcome.DONE, "200", 200, "tx_1", '{"id":"tx_1"}'))
    journal.settle(entries[1], Settlement(Outcome.REFUSED, "400", 400))
    journal.close()
    return tmp_path / "journal.db"


def test_first_write_while_another_process_reads_the_end_is_no_damage(tmp_path: Path) -> None:
    with (
        contextlib.closing(open_journal(find_place(tmp_path), now=lambda: NOW)) as journal,
        contextlib.closing(connect_to_read(tmp_path / "journal.db")) as reader,
    ):
        statements: list[str] = []

        def write_before_the_second(statement: str) -> None:
            statements.append(statement)
            if len(statements) == 2:
                journal.begin(AttemptRequest(intent(1), "r"))

        reader.set_trace_callback(write_before_the_second)
        ends = [read_tail(reader), read_tail(reader)]

        assert [(end.damage, end.last_entry) for end in ends] == [(None, 0), (None, 1)]


def test_journal_whose_format_changes_while_it_is_open_takes_no_more_writes(journal_file: Path) -> None:
    journal = open_journal(find_place(journal_file.parent), now=lambda: NOW)
    with sqlite3.connect(journal_file) as database:
        database.execute("PRAGMA user_version = 99")

    with pytest.raises(EscrowctlError) as refused:
        journal.begin(AttemptRequest(intent(9), "r-9"))
    with pytest.raises(EscrowctlError, match="newer escrowctl") as newer:
        open_journal(find_place(journal_file.parent), now=lambda: NOW)

    assert refused.value.code is newer.value.code is ErrorCode.JOURNAL_UNUSABLE
    journal.close()


def test_import_that_resent_more_often_than_it_was_sent_is_no_record() -> None:
    facts = facts_of_intent(intent(1), attempt=2, request_id="r") | facts_of_settlement(Settlement(Outcome.DONE, "200"))
    facts |= {"sent_at": AT, "settled_at": AT, "origin": f"{UUID} j1", "resends": 1}

    line = {"sequence": 1, "entry": 1, "kind": "import", "at": AT, "facts": facts, "digest": ""}
    RecordLine.model_validate(line)
    with pytest.raises(ValueError, match="resends"):
        RecordLine.model_validate(line | {"facts": facts | {"resends": 10**14}})


HOLD = """
import sys, pathlib
from escrowctl.journal.sqlite.locks import LockFile
locks = LockFile(pathlib.Path(sys.argv[1]))
print(locks.hold(sys.argv[2]), flush=True)
sys.stdin.read()
"""


def test_a_lock_dies_with_its_holder_however_it_ends(tmp_path: Path) -> None:
    path, place = tmp_path / "lock", "tx_1"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        locks = LockFile(path)
        held = (locks.is_held(place), locks.hold(place), locks.is_held("tx_2"))
        holder.kill()
        holder.wait()
        after = (locks.is_held(place), locks.hold(place), locks.is_held(place))
    locks.close()

    assert held == (True, False, False)
    assert after == (False, True, True)


def test_lock_that_the_system_refuses_leaves_the_others_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock_byte, refusals = fcntl.fcntl, iter((False, True))

    def refuse_the_second(*words: Any) -> object:
        if next(refusals, False):
            raise OSError(errno.ENOLCK, "no locks available")
        return lock_byte(*words)

    with contextlib.closing(LockFile(tmp_path / "lock")) as locks, contextlib.closing(LockFile(locks.path)) as others:
        monkeypatch.setattr(fcntl, "fcntl", refuse_the_second)
        with pytest.raises(EscrowctlError):
            locks.hold("tx_1", "tx_2")
        monkeypatch.undo()
        assert others.hold("tx_1", "tx_2")


def test_second_open_and_close_of_the_file_keeps_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = LockFile(path), LockFile(path)
    first.hold("tx_1")
    second.close()

    third = LockFile(path)
    assert third.hold("tx_1") is False
    third.close()
    first.close()
