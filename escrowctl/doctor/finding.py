"""The result of one check."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from escrowctl.errors import EscrowctlError, Hint


class Verdict(StrEnum):
    """What a check came to.

    `FOUND` is something that the profile could store; `UNCLEAR` needs a decision; `SKIPPED` could not be checked,
    or there was nothing to check.
    """

    OK = "ok"
    FOUND = "found"
    UNCLEAR = "unclear"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(NamedTuple):
    """One check: its name, its verdict, what was found in a few words, and what to do about it."""

    name: str
    verdict: Verdict
    finding: str
    hints: tuple[Hint, ...] = ()


def fail(name: str, error: EscrowctlError) -> Finding:
    """Return that a check failed with what it raised."""
    return Finding(name, Verdict.FAILED, error.message.removesuffix("."), error.hints)


def skip(why: str, *names: str) -> Iterator[Finding]:
    """Yield that checks could not be made."""
    for name in names:
        yield Finding(name, Verdict.SKIPPED, why)
