"""The result of one check."""

from enum import StrEnum
from typing import NamedTuple

from escrowctl.errors import EscrowctlError, Hint


class Verdict(StrEnum):
    """The result of a check.

    `FOUND` is a value that the profile could store; `UNCLEAR` needs a decision; `SKIPPED` could not be checked,
    or there was nothing to check.
    """

    OK = "ok"
    FOUND = "found"
    UNCLEAR = "unclear"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(NamedTuple):
    """One check: its name, its verdict, a short description, and hints to fix it."""

    name: str
    verdict: Verdict
    finding: str
    hints: tuple[Hint, ...] = ()


def fail(name: str, error: EscrowctlError) -> Finding:
    """Return the finding of a check that failed with this error."""
    return Finding(name, Verdict.FAILED, error.message, error.hints)
