"""Schemathesis finds nothing wrong with the sandbox, and finds each of those that are broken on purpose."""

from pathlib import Path

import pytest
from faults.seeds import draw_seed

from escrowctl.sandbox.service import Sandbox
from sandbox.broken import FAULTS, Fault
from sandbox.conftest import balances
from sandbox.examiner import Examination, examine

SEED = 8

SHORT = ("--max-examples", "10")
WHOLE = ("--max-examples", "30")  # with fewer, not every pair of calls in a row comes up
LONG = ("--max-examples", "1000")
NARROW = ("--max-examples", "5", "--phases", "coverage")


def assert_nothing_found(examination: Examination, sandbox: Sandbox, *, requests: int) -> None:
    assert examination.findings == frozenset(), examination.said
    assert examination.code == 0, examination.said
    # Fewer would say that it looked away.
    assert examination.requests > requests, examination.said
    assert [balance.currency for balance in balances(sandbox) if not balance.consistent] == []


def assert_found(examination: Examination, fault: Fault) -> None:
    """That it was found where it is, and nothing else anywhere."""
    assert fault.finding in examination.findings, examination.said
    assert {kind for kind, _ in examination.findings} <= fault.kinds, examination.said
    assert examination.code == 1


@pytest.mark.thorough
def test_the_sandbox_is_as_its_document_says(sandbox: Sandbox, tmp_path: Path) -> None:
    assert_nothing_found(examine(sandbox, tmp_path / "run", *SHORT, seed=SEED), sandbox, requests=400)


@pytest.mark.long
def test_the_sandbox_is_as_its_document_says_at_length(sandbox: Sandbox, tmp_path: Path) -> None:
    assert_nothing_found(examine(sandbox, tmp_path / "run", *LONG, seed=draw_seed()), sandbox, requests=5_000)


@pytest.mark.representative("a 200 where the document says 400")
@pytest.mark.parametrize("name", list(FAULTS)[:4])
def test_a_broken_sandbox_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    fault = FAULTS[name]
    fault.patch(monkeypatch)
    only = ("--include-operation-id", fault.operation.name)

    found = examine(request.getfixturevalue("sandbox"), tmp_path / "run", *NARROW, *only, seed=SEED)

    assert_found(found, fault)


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_every_broken_sandbox_is_found_by_the_whole_examination(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    FAULTS[name].patch(monkeypatch)

    found = examine(request.getfixturevalue("sandbox"), tmp_path / "run", *WHOLE, seed=SEED)

    assert_found(found, FAULTS[name])
