"""Findings: what the checks of `escrowctl doctor` return."""

from enum import StrEnum
from typing import NamedTuple

from escrowctl.errors import EscrowctlError, Hint


class Verdict(StrEnum):
    """How a check ended.

    `FOUND`: a value was found. `UNCLEAR`: the operator must choose it. `SKIPPED`: impossible or not needed.
    """

    OK = "ok"
    FOUND = "found"
    UNCLEAR = "unclear"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(NamedTuple):
    """The result of one check: its name, verdict, a short description, and hints for the operator."""

    name: str
    verdict: Verdict
    description: str
    hints: tuple[Hint, ...] = ()


def make_failure(name: str, error: EscrowctlError) -> Finding:
    """Return the finding of the check `name`, which `error` ended."""
    return Finding(name, Verdict.FAILED, error.message, error.hints)
