"""The result of one check."""

from enum import StrEnum
from typing import NamedTuple

from escrowctl.errors import EscrowctlError, Hint


class Verdict(StrEnum):
    """The result of a check.

    `FOUND`: the profile can store the value that was found. `UNCLEAR`: the operator must decide. `SKIPPED`: it could
    not be checked, or there was nothing to check.
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
    """Return the finding of a check that failed with this error."""
    return Finding(name, Verdict.FAILED, error.message, error.hints)
