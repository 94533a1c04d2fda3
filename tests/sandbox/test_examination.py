"""Schemathesis finds no fault in the sandbox, and finds each fault of `broken.py`."""

from pathlib import Path

import pytest
from faults.seeds import draw_seed

from escrowctl.sandbox.service import Sandbox
from sandbox.broken import FAULTS, Fault
from sandbox.conftest import balances
from sandbox.examiner import Examination, examine

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning")

SEED = 10  # with some others, a create is never followed by a read of what it created

SHORT = ("--max-examples", "10")
COMPLETE = ("--max-examples", "100")  # with fewer, some pairs of successive calls do not occur
LONG = ("--max-examples", "1000")
NARROW = ("--max-examples", "5", "--phases", "coverage")


def assert_nothing_found(examination: Examination, sandbox: Sandbox, *, requests: int) -> None:
    assert examination.findings == frozenset(), examination.output
    assert examination.code == 0, examination.output
    # Fewer requests would mean that it skipped operations.
    assert examination.requests > requests, examination.output
    assert [balance.currency for balance in balances(sandbox) if not balance.is_consistent] == []


def assert_found(examination: Examination, fault: Fault) -> None:
    """The fault was found at its operation, and no other kind of fault anywhere."""
    assert fault.finding in examination.findings, examination.output
    assert {kind for kind, _ in examination.findings} <= fault.kinds, examination.output
    assert examination.code == 1


@pytest.mark.slow
def test_sandbox_matches_its_openapi_document(sandbox: Sandbox, tmp_path: Path) -> None:
    assert_nothing_found(examine(sandbox, tmp_path / "run", *SHORT, seed=SEED), sandbox, requests=400)


@pytest.mark.long
def test_sandbox_matches_its_openapi_document_in_a_long_run(sandbox: Sandbox, tmp_path: Path) -> None:
    assert_nothing_found(examine(sandbox, tmp_path / "run", *LONG, seed=draw_seed()), sandbox, requests=5_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FAULTS)[:4])
def test_examination_finds_a_broken_sandbox(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    fault = FAULTS[name]
    fault.patch(monkeypatch)
    only = ("--include-operation-id", fault.operation.name)

    found = examine(request.getfixturevalue("sandbox"), tmp_path / "run", *NARROW, *only, seed=SEED)

    assert_found(found, fault)


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_complete_examination_finds_every_broken_sandbox(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    FAULTS[name].patch(monkeypatch)

    found = examine(request.getfixturevalue("sandbox"), tmp_path / "run", *COMPLETE, seed=SEED)

    assert_found(found, FAULTS[name])
