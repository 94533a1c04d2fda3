"""`escrowctl tx wait` and `tx watch`: poll escrows. They only read."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer

from escrowctl.client.polling import POLL_SECONDS, PollTimer
from escrowctl.commands.filters import parse_statuses
from escrowctl.commands.read import read_ids, view_one_of_several
from escrowctl.commands.times import parse_duration
from escrowctl.commands.tx.release import require_released_statuses
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import GET_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.contract.readable import require_escrow
from escrowctl.contract.record import Record
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_value, command
from escrowctl.options import IdsArgument
from escrowctl.output.view import View, view_record
from escrowctl.runtime import describe_duration, timestamp
from escrowctl.session import Session, session_of

_RELEASED = RELEASE_TRANSACTION.done
_TEMPORARY_CODES = (ErrorCode.READ_FAILED, ErrorCode.UNREADABLE_REPLY, ErrorCode.NO_CONNECTION, ErrorCode.RATE_LIMITED)
"""Errors of a read that may be temporary: escrowctl reads the escrow again."""
_MAX_NAMED_ESCROWS = 5


def wait(
    context: typer.Context,
    goals: Annotated[
        str, typer.Option("--for", metavar="STATUS,...", help="Statuses to wait for; released: see status.released.")
    ],
    ids: IdsArgument = None,
    failures: Annotated[
        str | None, typer.Option("--fail-on", metavar="STATUS,...", help="Statuses that make the command fail.")
    ] = None,
    deadline: Annotated[str, typer.Option("--deadline", metavar="TIME", help="Time to wait: 90s, 10m, 2h.")] = "10m",
) -> None:
    """Wait until each escrow has a status of --for, and show it.

    \b
    Examples:
      escrowctl tx wait tx_7K2M9QHD --for released --fail-on disputed,refunded
      escrowctl tx wait tx_7K2M9QHD --for held,released --deadline 2m --json
    """
    session = session_of(context)
    resource_ids, several = read_ids(ids, session.runtime.stdin)
    seconds = parse_duration(deadline, name="--deadline").total_seconds()
    goal_statuses = _parse_statuses(session, goals, name="--for")
    failure_statuses = _parse_statuses(session, failures, name="--fail-on")
    if goal_statuses & failure_statuses:
        raise bad_value(f"--for and --fail-on both name {', '.join(sorted(goal_statuses & failure_statuses))}.")
    poller = _StatusPoller(session, resource_ids, f"waiting for {goals}", seconds, every=POLL_SECONDS)
    for change in poller.read_changes():
        is_reached = change.is_one_of(goal_statuses)
        if change.before is not None or not is_reached:
            session.console.note("status", poller.describe(change))
        if change.is_one_of(failure_statuses):
            message = f"the status of {change.id} is {change.status}, which --fail-on names."
            hint, facts = command(f"tx get {change.id}", "to see it"), {"id": change.id, "status": change.status}
            raise EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hint, facts=facts)
        if is_reached:
            poller.left.remove(change.id)
            if several:
                session.console.show_line(view_one_of_several(session, change.record, change.id))
            else:
                session.show(view_record(change.record, change.id, raw=session.options.raw))
    session.remember_ids("transaction", dict.fromkeys(resource_ids))
    if poller.left:
        raise _deadline_error(poller, deadline, goals=True)


def watch(
    context: typer.Context,
    ids: IdsArgument = None,
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="Time between two reads.")] = "5s",
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="TIME", help="Time to watch: 90s, 10m, 2h.")
    ] = None,
) -> None:
    """Show each change of status, until Ctrl-C.

    The command also ends when every escrow has a status of status.released or status.failed.

    \b
    Examples:
      escrowctl tx watch tx_7K2M9QHD
      escrowctl tx watch tx_7K2M9QHD tx_4W8KTN2C --interval 1m --json
    """
    session = session_of(context)
    resource_ids, _ = read_ids(ids, session.runtime.stdin)
    every = parse_duration(interval, name="--interval").total_seconds()
    seconds = parse_duration(deadline, name="--deadline").total_seconds() if deadline is not None else None
    final_statuses = session.service.released | session.service.failed
    session.remember_ids("transaction", dict.fromkeys(resource_ids))
    poller = _StatusPoller(session, resource_ids, "watching", seconds, every=every)
    for change in poller.read_changes():
        at = timestamp(session.runtime.now())
        named: dict[str, JsonValue] = {
            "at": at,
            "id": change.id,
            "status_before": change.before,
            "status_after": change.status,
        }
        line = f"{at[11:19]}Z  {change.id}  {change}"
        session.console.show_line(View(named, change.id, named, line=line, named=named, record=change.record.value))
        if change.is_one_of(final_statuses):
            poller.left.remove(change.id)
    if poller.left:
        raise _deadline_error(poller, deadline or "", goals=False)


class _StatusChange(NamedTuple):
    """A change of an escrow's status from `before` to `status`. `before` is None for its first status."""

    id: str
    before: str | None
    status: str
    record: Record

    def is_one_of(self, statuses: frozenset[str]) -> bool:
        """Whether the new status is one of these case-folded statuses."""
        return self.status.casefold() in statuses

    def __str__(self) -> str:
        return f"{self.before} -> {self.status}" if self.before is not None else self.status


class _StatusPoller:
    """Reads escrows every `every` seconds, until none is left or `seconds` have passed (None: no limit).

    `activity`: what the command does, for the progress line. `left`: the ids that are still read. The caller removes
    an id to stop reading its escrow.
    """

    def __init__(self, session: Session, ids: list[str], activity: str, seconds: float | None, *, every: float) -> None:
        session.service.refuse_key(*ids)
        self.left = list(dict.fromkeys(ids))
        self.statuses: dict[str, str] = {}
        self._session = session
        self._activity = activity
        self._pace = PollTimer(session.runtime, session.signals, seconds, every=every, tick=self._draw_progress)

    def read_changes(self) -> Iterator[_StatusChange]:
        """Yield each escrow's first status and each change. Raises EscrowctlError for a lasting failure to read."""
        while True:
            for resource_id in [*self.left]:
                record = self._read(resource_id)
                status, before = (record.known.status if record else None), self.statuses.get(resource_id)
                if record is not None and status is not None and status != before:
                    self.statuses[resource_id] = status
                    yield _StatusChange(resource_id, before, status, record)
            if not self.left or not self._pace.wait_for_next_read():
                return

    def describe(self, change: _StatusChange) -> str:
        """Return a change as text: the id, the statuses, and the time since the start (not for a first status)."""
        after = f" after {describe_duration(self._pace.elapsed)}" if change.before is not None else ""
        return f"{change.id}: {change}{after}"

    def _read(self, resource_id: str) -> Record | None:
        """Return a record. If its error is in `_TEMPORARY_CODES`, write a note and return None; else raise it."""
        try:
            record = self._session.reader.read(GET_TRANSACTION, resource_id, for_write=True)
        except EscrowctlError as error:
            if error.code not in _TEMPORARY_CODES:
                raise
            self._session.console.note("not_read", error.message.removesuffix("."))
            return None
        require_escrow(resource_id, record)
        if record.known.status is None:
            self._session.console.note("no_status", f"escrowctl finds no status in the record of {resource_id}")
        return record

    def _draw_progress(self, elapsed: float) -> None:
        first = self.left[0]
        escrows = f"{first} ({self.statuses.get(first, '?')})" if len(self.left) == 1 else f"{len(self.left)} escrows"
        self._session.console.draw_wait(f"{self._activity}: {escrows}", elapsed)


def _parse_statuses(session: Session, text: str | None, *, name: str) -> frozenset[str]:
    """Return the statuses in `text`, the value of the option `name`; none if it is not given.

    "released" is replaced by the statuses in status.released. Raises `BAD_VALUE` if these are not set.
    """
    statuses = set(parse_statuses(text, name=name))
    if _RELEASED in statuses:
        statuses.remove(_RELEASED)
        statuses |= require_released_statuses(session, needed_by=f"{name} {_RELEASED}")
    return frozenset(statuses)


def _deadline_error(poller: _StatusPoller, deadline: str, *, goals: bool) -> EscrowctlError:
    """Return the `WAIT_EXPIRED` error, with the statuses of the remaining escrows. `goals`: the command has --for."""
    left, statuses = poller.left, poller.statuses
    known = [f"the status of {one} is {statuses.get(one, 'not known')}" for one in left[:_MAX_NAMED_ESCROWS]]
    more = f" and {len(left) - _MAX_NAMED_ESCROWS} more" if len(left) > _MAX_NAMED_ESCROWS else ""
    found = ",".join(sorted({statuses[one] for one in left if one in statuses}))
    return EscrowctlError(
        ErrorCode.WAIT_EXPIRED,
        f"the deadline ({deadline}) passed: {', '.join(known)}{more}.",
        hint=Hint(f"repeat the command with --for {found}", f"if you wait for {found}") if goals and found else (),
        facts={"statuses": {one: statuses.get(one) for one in left}},
    )
