"""What the lists of escrows share: filters that apply here and not at the service."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from escrowctl.commands.times import parse_moment
from escrowctl.contract.timestamps import read_time
from escrowctl.errors import ONLY_READ, ErrorCode, EscrowctlError, bad_value, command
from escrowctl.session import Session

StatusOption = Annotated[
    str | None, typer.Option("--status", metavar="STATUS,...", help="Only these statuses, such as held.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Created then or later: a date, a time, or 7d (ago).")
]
ReferenceOption = Annotated[str | None, typer.Option("--reference", metavar="TEXT", help="Only this reference.")]


class Filters:
    """Which escrows to show; `statuses` are case-folded, empty: any. `undated` counts those without a usable time."""

    def __init__(self, statuses: frozenset[str], since: datetime | None, reference: str | None) -> None:
        self.statuses = statuses
        self.since = since
        self.reference = reference
        self.undated = 0

    def __bool__(self) -> bool:
        return bool(self.statuses or self.since or self.reference)

    def has_status(self, status: str | None) -> bool:
        """Whether a status is one of those asked for; case does not matter."""
        return not self.statuses or (status or "").casefold() in self.statuses

    def is_recent(self, created: str | None) -> bool:
        """Whether a time of creation is late enough; one that cannot be read is counted, and is not."""
        if self.since is None:
            return True
        moment = read_time(created)
        self.undated += moment is None
        return moment is not None and moment >= self.since

    def note_left_out(self, session: Session, statuses: Sequence[str | None]) -> None:
        """Report how many escrows were left out for what cannot be read of them; `statuses` are those of all.

        Raises EscrowctlError `ErrorCode.UNREADABLE_REPLY` where --status could compare none.
        """
        unstated = sum(one is None for one in statuses) if self.statuses else 0
        find = command("doctor --tx ID", "to find the field of the status")
        if unstated and unstated == len(statuses):
            none = f"--status cannot be applied: escrowctl finds no status in the {unstated} escrows listed."
            raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, none, effect=ONLY_READ, hint=find)
        if unstated:
            why = f"--status left out escrows without a status that escrowctl finds: {unstated}"
            session.console.note("unstated", why, important=True, hints=(find,), invocation=session.invocation)
        if self.undated:
            why = "--since left out escrows without a readable time of creation"
            session.console.note("undated", f"{why}: {self.undated}", important=True)


def check_filters(session: Session, status: str | None, since: str | None, reference: str | None) -> Filters:
    """Return the filters; raises EscrowctlError (exit 2) for a bad value."""
    now = session.runtime.now()
    return Filters(
        frozenset(parse_statuses(status, name="--status")) if status is not None else frozenset(),
        parse_moment(since, name="--since", now=now) if since is not None else None,
        reference,
    )


def parse_statuses(text: str, *, name: str) -> list[str]:
    """Return the statuses of a list with commas, case-folded; raises EscrowctlError (exit 2) for an empty one."""
    statuses = [one.strip().casefold() for one in text.split(",")]
    if not all(statuses):
        raise bad_value(f'{name} "{text}" has an empty status: write one or more, such as held,disputed.')
    return statuses
