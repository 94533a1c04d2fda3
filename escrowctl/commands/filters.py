"""The filters for lists of journal entries and of escrows: the options, and the code that applies the filters."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, get_args

import typer

from escrowctl.commands.api import Method
from escrowctl.commands.times import parse_moment
from escrowctl.contract.operations import WRITES, make_raw_operation
from escrowctl.contract.record import read_time
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.model import UNCONFIRMED, Selection, State
from escrowctl.runtime import timestamp
from escrowctl.session import Session

_RAW_CALLS = "call"

# mypy wants a literal list of members.
OperationChoice = StrEnum("OperationChoice", [*(one.word for one in WRITES), _RAW_CALLS])  # type: ignore[misc]
StateChoice = StrEnum("StateChoice", [*State, UNCONFIRMED])  # type: ignore[misc]

StateOption = Annotated[
    StateChoice | None, typer.Option("--state", metavar="STATE", help=f"Only {', '.join(StateChoice)}.")
]
OperationOption = Annotated[
    OperationChoice | None,
    typer.Option("--operation", metavar="KIND", help=f"Only this kind: {', '.join(OperationChoice)}."),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Since this time: a date, a time, or 24h (ago).")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this time; see --since.")]
ReferenceOption = Annotated[str | None, typer.Option("--reference", metavar="TEXT", help="Only with this reference.")]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Only writes that created or changed ID.")]
StatusOption = Annotated[
    str | None, typer.Option("--status", metavar="STATUS,...", help="Only these statuses, such as held.")
]


def make_selection(
    session: Session, *, operation: OperationChoice | None = None, since: str | None, until: str | None
) -> Selection:
    """Return the selection of entries for these options. Raises `BAD_VALUE` for a bad time or unknown profile."""
    now = session.runtime.now()
    first = timestamp(parse_moment(since, name="--since", now=now)) if since is not None else None
    end = timestamp(parse_moment(until, name="--until", now=now)) if until is not None else None
    if first is not None and end is not None and first >= end:
        raise bad_value(f"--since {since} must be before --until {until}.")
    profile = session.options.profile
    is_used = profile is None or any(session.journal_to_read.select_all(Selection(1, profile=profile)))
    if not (is_used or profile in session.resolver.profiles):
        raise bad_value(f'there is no profile "{profile}", and no journal entry has this profile.')
    names = [one.name for one in WRITES if one.word == operation]
    if operation == _RAW_CALLS:
        names = [make_raw_operation(method, "").name for method in get_args(Method)]
    return Selection(profile=profile, operations=tuple(names), since=first, until=end)


class Filters:
    """Which escrows to show. `statuses` are case-folded; if empty, any status passes.

    `undated` counts the escrows that `is_recent` rejects because their time of creation is unreadable.
    """

    def __init__(self, session: Session, status: str | None, since: str | None, reference: str | None) -> None:
        """Read the values of these options. Raises `ErrorCode.BAD_VALUE` for an invalid value."""
        self.statuses = frozenset(parse_statuses(status, name="--status"))
        self.since = parse_moment(since, name="--since", now=session.runtime.now()) if since is not None else None
        self.reference = reference
        self.undated = 0

    def __bool__(self) -> bool:
        return bool(self.statuses or self.since or self.reference)

    def has_status(self, status: str | None) -> bool:
        """Whether an escrow with this status passes the filter. Case does not matter."""
        return not self.statuses or (status or "").casefold() in self.statuses

    def is_recent(self, created: str | None) -> bool:
        """Whether an escrow created at this time passes `since`. An unreadable time does not, and is counted."""
        if self.since is None:
            return True
        moment = read_time(created)
        self.undated += moment is None
        return moment is not None and moment >= self.since

    def note_left_out(self, session: Session, statuses: Sequence[str | None]) -> None:
        """Report how many escrows were left out because their status or time could not be read.

        `statuses`: one for each listed escrow. Raises `ErrorCode.UNREADABLE_REPLY` for `--status` if all are None.
        """
        without_status = sum(one is None for one in statuses) if self.statuses else 0
        if without_status:
            find = command("doctor --tx ID", "to find the field that has the status")
            if without_status == len(statuses):
                none = f"--status cannot be applied: escrowctl finds no status in the {without_status} escrows listed."
                raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, none, effect=Effect.ONLY_READ, hint=find)
            why = f"--status left out the escrows in which escrowctl finds no status: {without_status}"
            session.console.note("unstated", why, important=True, hints=(find,))
        if self.undated:
            why = f"--since left out the escrows without a readable time of creation: {self.undated}"
            session.console.note("undated", why, important=True)


def parse_statuses(text: str | None, *, name: str) -> list[str]:
    """Return the statuses in the option `name`, case-folded; None has none. Raises `BAD_VALUE` for an empty status."""
    statuses = [one.strip().casefold() for one in text.split(",")] if text is not None else []
    if not all(statuses):
        raise bad_value(f'{name} "{text}" has an empty status: write one or more, such as held,disputed.')
    return statuses
