"""Batches as separate processes: two at once, a terminal that hangs up, an id that another process works on."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from e2e.script import SECONDS
from wire_server import Seen

from batch.conftest import Clock, Start, WriteRows, counts_of, open_elsewhere
from batch.services import as_usual
from batch.test_kills import served

RUN = ("--yes", "--json")


def test_file_that_two_processes_start_is_sent_once(tmp_path: Path, rows: WriteRows) -> None:
    words = ("batch", "create", str(rows(60)), *RUN)
    with served(tmp_path, as_usual) as (service, program):
        both = [program.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
        codes = sorted(process.wait(SECONDS) for process in both)

        assert (codes, len(service.applied), set(service.applied.values())) == ([0, 7], 60, {1})


@pytest.mark.slow
def test_terminal_that_hangs_up_lets_rows_in_flight_finish(tmp_path: Path, rows: WriteRows) -> None:
    arrived = threading.Event()

    def answer(number: int, _seen: Seen) -> str:
        if number >= 5:
            arrived.set()
            # The terminal is gone before the reply comes.
            threading.Event().wait(0.3)
        return ""

    with served(tmp_path, answer) as (service, program):
        terminal = program.terminal("batch", "create", str(rows(60)), "--yes", "--concurrency", "2")
        assert arrived.wait(SECONDS)
        # The kernel sends SIGHUP to the session, and every write to the terminal fails from then on.
        os.close(terminal.process.child_fd)
        threading.Event().wait(0.1)
        # A shell sends it once more to its jobs.
        os.kill(terminal.process.pid, signal.SIGHUP)
        code = os.waitstatus_to_exitcode(os.waitpid(terminal.process.pid, 0)[1])
        counts = program.run("batch", "show", "b1", "--json").json

    assert (code, counts["unknown"], counts["done"], counts["refused"]) == (143, 0, len(service.received), 0)
    assert 5 <= counts["done"] < 20


def test_row_whose_id_another_process_works_on_is_not_sent(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start()
    run("release", str(rows(text="id\ntx_1\n")), *RUN)
    elsewhere = open_elsewhere(home)
    (entry,) = elsewhere.storage.read_entries([1])
    assert elsewhere.locks.hold(f"{entry.intent.service}\ntransaction\ntx_2")

    result = run("release", str(rows(text="id\ntx_2\ntx_3\n")), *RUN, **Clock().injected)
    elsewhere.close()

    assert (result.code, counts_of(result), set(service.applied)) == (15, (1, 0, 0, 1), {"tx_1", "tx_3"})


def test_release_that_a_reading_shows_is_not_sent_again(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: None if number > 1 else "", deduplicates=True)

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN, "--concurrency", "1")

    # The reply to the second was lost: before it is sent again, its record is read.
    assert (result.code, counts_of(result), len(service.received)) == (0, (2, 0, 0, 0), 2)
