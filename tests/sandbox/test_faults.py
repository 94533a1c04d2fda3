"""Faults that `sandbox set` sets: what is applied, and what the client sees, in-process and over sockets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Result, Run

from sandbox.serving import serving_here

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning")

CREATE = ("tx", "create", "--amount", "100", "--currency", "USD", "--json")

# Fault of a create -> exit code, error code, and whether the escrow exists.
OUTCOMES: dict[str, tuple[int, str | None, bool]] = {
    "drop-reply": (12, "outcome_unknown", True),
    "latency:300ms": (0, None, True),
    "latency:2s": (12, "outcome_unknown", True),
    "429": (9, "rate_limited", False),
    "500": (12, "outcome_unknown", True),
    "bad-json": (12, "outcome_unknown", True),
    "truncated": (12, "outcome_unknown", True),
    "reset": (12, "outcome_unknown", False),
}


@pytest.fixture(params=["in-process", "served"])
def sandbox(request: pytest.FixtureRequest, home: Path) -> Iterator[str]:
    if request.param == "in-process":
        yield request.param
        return
    with serving_here(home):
        yield request.param


def count_escrows(run: Run) -> int:
    return sum(run("sandbox", "status", "--json").json["transactions"].values())


@pytest.mark.representative("served-drop-reply", "in-process-reset", "served-429", "in-process-latency:300ms")
@pytest.mark.parametrize("fault", OUTCOMES)
def test_fault_of_a_create_has_its_outcome(sandbox: str, fault: str, run: Run) -> None:
    code, error, exists = OUTCOMES[fault]
    assert run("sandbox", "set", f"fault.create={fault},3x").code == 0

    ended = run("--sandbox", "--timeout", "1", *CREATE)

    assert (ended.code, ended.error["code"] if error else None, count_escrows(run)) == (code, error, int(exists))
    if code == 12:
        assert ended.error["outcome"] == "unknown"


def evidence_of(ended: Result) -> dict[str, Any]:
    error = ended.error
    return {name: error.get(name) for name in ("code", "message", "outcome", "http_status", "exit_code")}


@pytest.mark.representative("drop-reply", "reset", "truncated", "500")
@pytest.mark.parametrize("fault", [fault for fault, outcome in OUTCOMES.items() if outcome[0]])
def test_fault_looks_the_same_in_process_and_over_a_socket(fault: str, home: Path, run: Run) -> None:
    run("sandbox", "set", f"fault.create={fault}")
    line = ("--sandbox", "--timeout", "1", *CREATE)

    in_process = run(*line, "--reference", "a")
    with serving_here(home):
        served = run(*line, "--reference", "b")

    assert evidence_of(in_process) == evidence_of(served)
