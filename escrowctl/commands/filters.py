"""The filters of every list of writes or escrows: their options and selections."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, get_args

import typer

from escrowctl.commands.api import Method
from escrowctl.commands.times import parse_moment
from escrowctl.contract.operations import OPERATIONS, make_foreign
from escrowctl.contract.record import read_time
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.model import Selection, State
from escrowctl.runtime import timestamp
from escrowctl.session import Session

OperationWord = Literal["create", "release", "update", "webhook", "call"]
StateWord = Literal["in_flight", "done", "refused", "unknown", "not_sent", "not_applied", "unconfirmed"]

PAGE = 1000
"""The number of entries read at a time."""

StateOption = Annotated[
    StateWord | None, typer.Option("--state", metavar="STATE", help=f"Only {', '.join(get_args(StateWord))}.")
]
OperationOption = Annotated[
    OperationWord | None,
    typer.Option("--operation", metavar="WORD", help=f"Only this: {', '.join(get_args(OperationWord))}."),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="From then on: a date, a time, or 24h (ago).")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Sent before then.")]
ReferenceOption = Annotated[str | None, typer.Option("--reference", metavar="TEXT", help="Only this reference.")]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Only what was written to, or made, this.")]
StatusOption = Annotated[
    str | None, typer.Option("--status", metavar="STATUS,...", help="Only these statuses, such as held.")
]


def select(
    session: Session,
    *,
    page: int = PAGE,
    states: tuple[State, ...] = (),
    operation: OperationWord | None = None,
    since: str | None,
    until: str | None,
    reference: str | None = None,
    resource_id: str | None = None,
) -> Selection:
    """Return the selection of entries for the options. Raises BAD_VALUE for bad times or an unknown profile."""
    now = session.runtime.now()
    first = timestamp(parse_moment(since, name="--since", now=now)) if since is not None else None
    end = timestamp(parse_moment(until, name="--until", now=now)) if until is not None else None
    if first is not None and end is not None and first >= end:
        raise bad_value(f"--since {since} is not before --until {until}.")
    return Selection(
        page,
        states=states,
        profile=_profile(session),
        operations=_names_of(operation) if operation is not None else (),
        since=first,
        until=end,
        reference=reference,
        resource_id=resource_id,
    )


def _names_of(word: OperationWord) -> tuple[str, ...]:
    if word == "call":
        return tuple(make_foreign(method, "").name for method in get_args(Method))
    return tuple(one.name for one in OPERATIONS if word in (one.verb, one.noun) and one.is_write)


def _profile(session: Session) -> str | None:
    """Return the profile of -p. Raises BAD_VALUE for a name without profile and entries: it is likely a typo."""
    name = session.options.profile
    if name is None or session.journal_to_read.select(Selection(1, profile=name)):
        return name
    if name not in session.resolver.profiles:
        raise bad_value(f'there is no profile "{name}", and no entry in the journal under that name.')
    return name


class Filters:
    """Which escrows to show. `statuses`: case-folded, empty: any. `undated` counts those without a valid time."""

    def __init__(self, statuses: frozenset[str], since: datetime | None, reference: str | None) -> None:
        self.statuses = statuses
        self.since = since
        self.reference = reference
        self.undated = 0

    def __bool__(self) -> bool:
        return bool(self.statuses or self.since or self.reference)

    def has_status(self, status: str | None) -> bool:
        """Whether a status is one of `statuses`, in any case."""
        return not self.statuses or (status or "").casefold() in self.statuses

    def is_recent(self, created: str | None) -> bool:
        """Whether a time of creation is late enough. An unreadable one counts in `undated` and is not."""
        if self.since is None:
            return True
        moment = read_time(created)
        self.undated += moment is None
        return moment is not None and moment >= self.since

    def note_left_out(self, session: Session, statuses: Sequence[str | None]) -> None:
        """Report how many escrows were left out because of unreadable fields. `statuses`: of all listed escrows.

        Raises EscrowctlError `ErrorCode.UNREADABLE_REPLY` if --status is given and no listed one has a status.
        """
        unstated = sum(one is None for one in statuses) if self.statuses else 0
        find = command("doctor --tx ID", "to find the field of the status")
        if unstated and unstated == len(statuses):
            none = f"--status cannot be applied: escrowctl finds no status in the {unstated} escrows listed."
            raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, none, effect=Effect.ONLY_READ, hint=find)
        if unstated:
            why = f"--status left out escrows without a status that escrowctl finds: {unstated}"
            session.console.note("unstated", why, important=True, hints=(find,), invocation=session.invocation)
        if self.undated:
            why = "--since left out escrows without a readable time of creation"
            session.console.note("undated", f"{why}: {self.undated}", important=True)


def check_filters(session: Session, status: str | None, since: str | None, reference: str | None) -> Filters:
    """Return the filters. Raises EscrowctlError `BAD_VALUE`."""
    now = session.runtime.now()
    return Filters(
        frozenset(parse_statuses(status, name="--status")) if status is not None else frozenset(),
        parse_moment(since, name="--since", now=now) if since is not None else None,
        reference,
    )


def parse_statuses(text: str, *, name: str) -> list[str]:
    """Return the statuses of a list with commas, case-folded. Raises EscrowctlError `BAD_VALUE` for an empty one."""
    statuses = [one.strip().casefold() for one in text.split(",")]
    if not all(statuses):
        raise bad_value(f'{name} "{text}" has an empty status: write one or more, such as held,disputed.')
    return statuses
