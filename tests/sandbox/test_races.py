"""One sandbox used by threads, by processes, and by processes that die."""

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import internals
import pytest

from escrowctl.sandbox.service import Sandbox
from sandbox.conftest import Start, balances

Now = Callable[[], datetime]

THREADS = 16
BODY = {"amount": 25, "currency": "USD"}


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def run_all(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Start all processes at once, and return what each printed."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        go(process)
    return [process.communicate(timeout=60)[0].strip() for process in processes]


def race_threads(client: httpx.Client, rounds: int) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(rounds):
            made = client.post("/transactions", json=BODY).json()["id"]
            barrier = threading.Barrier(THREADS)

            def release(path: str = f"/transactions/{made}/release", gate: threading.Barrier = barrier) -> int:
                gate.wait()
                return client.put(path).status_code

            statuses = sorted(future.result() for future in [pool.submit(release) for _ in range(THREADS)])
            assert statuses == [200] + [409] * (THREADS - 1)


@pytest.mark.slow
def test_release_by_eight_processes_is_200_once(
    sandbox: Sandbox, client: httpx.Client, folder: Path, start: Start
) -> None:
    made = client.post("/transactions", json=BODY).json()["id"]

    printed = run_all([start("release", folder, made) for _ in range(8)])

    assert sorted(printed) == ["200"] + ["409"] * 7
    assert [(balance.is_consistent, balance.hold_balance) for balance in balances(sandbox)] == [(True, 0)]


def test_creates_by_many_threads_are_all_stored(sandbox: Sandbox, client: httpx.Client) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        replies = list(pool.map(lambda _: client.post("/transactions", json=BODY), range(64)))

    ids = {reply.json()["id"] for reply in replies}
    assert len(ids) == 64
    assert {record["id"] for record in client.get("/transactions?limit=100").json()["data"]} == ids
    assert [balance.hold_balance for balance in balances(sandbox)] == [64 * 250_000]


@pytest.mark.slow
def test_store_opened_by_eight_processes_is_created_once(folder: Path, start: Start) -> None:
    printed = run_all([start("open", folder) for _ in range(8)])

    assert len(set(printed)) == 1
    assert printed[0].startswith("sbx_")


def test_answer_follows_its_commit(sandbox: Sandbox) -> None:
    steps: list[str] = []
    internals.store_connection(sandbox.store).set_trace_callback(steps.append)

    def watched(environ: Any, start_response: Any) -> Any:
        def answer(*arguments: Any) -> Any:
            steps.append("ANSWER")
            return start_response(*arguments)

        return sandbox.app(environ, answer)

    headers = {"Authorization": f"Bearer {sandbox.key}"}
    base = "http://sandbox.invalid/api/v1"
    with httpx.Client(transport=httpx.WSGITransport(app=watched), base_url=base, headers=headers) as client:
        made = client.post("/transactions", json=BODY).json()["id"]
        client.put(f"/transactions/{made}/release")

    marks = [step for step in steps if step in {"BEGIN IMMEDIATE", "COMMIT", "ANSWER"}]
    # The first two end readings: what is set, and what is due by now?
    assert marks == ["COMMIT", "COMMIT", "BEGIN IMMEDIATE", "COMMIT", "ANSWER"] * 2
