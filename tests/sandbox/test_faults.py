"""Faults that `sandbox set` sets: what is applied, and what the client sees, in-process and over sockets."""

from pathlib import Path

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


def create_under(fault: str, run: Run, reference: str) -> tuple[Result, bool]:
    """Create once under a fault; return the result, and whether there is one escrow more."""

    def count() -> int:
        return sum(run("sandbox", "status", "--json").json["transactions"].values())

    before = count()
    assert run("sandbox", "set", f"fault.create={fault},3x").code == 0
    ended = run("--sandbox", "--timeout", "1", *CREATE, "--reference", reference)
    return ended, count() > before


@pytest.mark.slow
@pytest.mark.parametrize("fault", OUTCOMES)
def test_fault_has_its_outcome_in_process_and_over_a_socket(fault: str, home: Path, run: Run) -> None:
    code, error, exists = OUTCOMES[fault]

    in_process = create_under(fault, run, "a")
    run("sandbox", "set", "fault.create=off")
    with serving_here(home):
        served = create_under(fault, run, "b")

    for ended, made in (in_process, served):
        assert (ended.code, ended.error["code"] if error else None, made) == (code, error, exists)
    if error:
        facts = [
            (ended.error["message"], ended.error["outcome"], ended.error["http_status"])
            for ended, _ in (in_process, served)
        ]
        assert facts[0] == facts[1]
