"""Senders that are stopped (SIGSTOP) until their leases lapse, while another machine decides on their writes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest
from cli.replies import holding
from storage.postgres import Server
from wire_server import Seen, serving

from faults.test_shared_kills import Machines

PROGRAM = str(Path(__file__).with_name("stopping_program.py"))
STOPS = {1: "escrowctl.client.http.Evidence.mark_sent", 2: "escrowctl.journal.journal.Journal.settle", 3: ""}
"""Amount and entry -> where its sender stops: before the first byte, before it records the outcome, or at the reply."""

SENT = {1: 0, 2: 1, 3: 1}
DECISIONS = {"not_applied": ("--not-applied", "--allow-unreadable"), "done": ("--resend", "--yes")}
SHORT, REAL = 3, 30
"""Seconds of a lease."""

_SECONDS = 100


def check_stopped_senders(server: Server, folder: Path, lease: int, decision: str, variant: str = "") -> None:
    has_arrived, may_reply, answer = threading.Event(), threading.Event(), holding()

    def behave(seen: Seen, connection: socket.socket) -> None:
        if b'"amount":3' in seen.body and not has_arrived.is_set():
            has_arrived.set()
            may_reply.wait(_SECONDS)
        answer(seen, connection)

    def start(*words: str, home: int = 1, stop: str = "") -> subprocess.Popen[str]:
        return machines.run(*words, "--json", home=home, program=(PROGRAM, str(lease), stop, variant))

    def end_all(*words: str) -> list[tuple[int, str, str]]:
        """Run a command of the other machine for each entry."""
        processes = [start("journal", words[0], f"j{number}", *words[1:]) for number in STOPS]
        return [machines.end(process) for process in processes]

    def decide() -> list[int]:
        return [code for code, _, _ in end_all("resolve", "--reason", "its host stopped", *DECISIONS[decision])]

    def move_leases(change: str) -> None:
        machines.execute(f"UPDATE main.senders SET expires_at = expires_at + {change} * interval '1 second'")

    with serving(behave) as service, contextlib.ExitStack() as stack:
        machines, senders = Machines(server, service, folder, 0), list[subprocess.Popen[str]]()
        for number, stop in STOPS.items():
            words = ("tx", "create", "--amount", f"{number}", "--currency", "USD", "--reference", f"order-{number}")
            process = stack.enter_context(start(*words, home=0, stop=stop))
            stack.callback(process.kill)
            senders.append(process)
            if not stop:
                assert has_arrived.wait(_SECONDS)
                process.send_signal(signal.SIGSTOP)
            stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert stopped is not None
            assert stopped.si_code == os.CLD_STOPPED

        move_leases(f"{_SECONDS}")
        assert decide() == [7] * 3, "decided while the senders live"
        move_leases(f"-{_SECONDS}")
        machines.execute("SELECT pg_sleep_until(max(expires_at)) FROM main.senders")
        assert decide() == [7] * 3, "decided before the time-out"
        move_leases("-attempt_seconds")
        assert decide() == [0] * 3
        decided = [json.loads(out) for _, out, _ in end_all("show")]
        may_reply.set()
        for process in senders:
            process.send_signal(signal.SIGCONT)
        ends = [machines.end(process) for process in senders]
        service.drain()

        arrived = Counter(json.loads(seen.body)["amount"] for seen in service.writes)
        assert arrived == Counter(SENT) + Counter(STOPS.keys() if decision == "done" else ()), "sent late"
        assert [json.loads(out) for _, out, _ in end_all("show")] == decided, "recorded over the decision"
        assert [one["state"] for one in decided] == [decision] * 3
        errors = [json.loads(err.splitlines()[-1])["error"] for _, _, err in ends]
        assert [(one["exit_code"], one["http_status"]) for one in errors] == [(12, None), (12, 200), (12, 200)]
        assert [code for code, _, _ in ends] == [12] * 3
        assert machines.end(machines.run("journal", "verify"))[0] == 0


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize(
    "lease", [pytest.param(SHORT, marks=pytest.mark.slow), pytest.param(REAL, marks=pytest.mark.long)]
)
def test_stopped_senders_send_nothing_late_and_overwrite_nothing(
    postgres: Server, tmp_path: Path, lease: int, decision: str
) -> None:
    check_stopped_senders(postgres, tmp_path, lease, decision)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "noticed"),
    [
        ("sends_after_its_lease", "sent late"),
        ("forgets_the_time_out", "decided before the time-out"),
        ("records_over_others", "recorded over the decision"),
    ],
)
@pytest.mark.usefixtures("time_limit")
def test_stops_notice_a_broken_variant(postgres: Server, tmp_path: Path, variant: str, noticed: str) -> None:
    with pytest.raises(AssertionError, match=noticed):
        check_stopped_senders(postgres, tmp_path, SHORT, "not_applied", variant)
    assert (tmp_path / "broken-here").exists()
