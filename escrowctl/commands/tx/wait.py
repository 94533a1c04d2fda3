"""`escrowctl tx wait` and `tx watch`: poll escrows. They only read."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer

from escrowctl.client.polling import POLL_SECONDS, PollInterval
from escrowctl.commands.filters import parse_statuses
from escrowctl.commands.read import read_ids, view_of_several
from escrowctl.commands.times import parse_duration
from escrowctl.commands.tx.release import require_released_statuses
from escrowctl.config.advice import advise_setting
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
_MAY_PASS = (ErrorCode.READ_FAILED, ErrorCode.UNREADABLE_REPLY, ErrorCode.NO_CONNECTION, ErrorCode.RATE_LIMITED)
"""Errors of a reading that may be temporary: the escrow is read again."""
_MOST_NAMED = 5


def wait(
    context: typer.Context,
    goals: Annotated[
        str, typer.Option("--for", metavar="STATUS,...", help="Statuses that end it; released: as the profile says.")
    ],
    ids: IdsArgument = None,
    failures: Annotated[
        str | None, typer.Option("--fail-on", metavar="STATUS,...", help="Statuses that end it with 16.")
    ] = None,
    deadline: Annotated[str, typer.Option("--deadline", metavar="TIME", help="How long: 90s, 10m, 2h (13).")] = "10m",
) -> None:
    """Wait until each escrow has one of these statuses, and show it.

    \b
    Examples:
      escrowctl tx wait tx_7K2M9QHD --for released --fail-on disputed,refunded
      escrowctl tx wait tx_7K2M9QHD --for held,released --deadline 2m --json
    """
    session = session_of(context)
    wanted, several = read_ids(ids, session.runtime.stdin)
    seconds = parse_duration(deadline, name="--deadline").total_seconds()
    good = _read_statuses(session, goals, name="--for")
    bad = _read_statuses(session, failures, name="--fail-on") if failures is not None else frozenset[str]()
    if good & bad:
        raise bad_value(f"--for and --fail-on both name {', '.join(sorted(good & bad))}.")
    following = _Following(session, wanted, f"waiting for {goals}", seconds, every=POLL_SECONDS)
    for change in following.changes():
        is_reached = change.is_one_of(good)
        if change.before is not None or not is_reached:
            session.console.note("status", following.describe(change))
        if change.is_one_of(bad):
            raise EscrowctlError(
                ErrorCode.CHECK_FAILED,
                f"the status of {change.id} is {change.status}, which --fail-on names.",
                hint=command(f"tx get {change.id}", "to see it"),
                facts={"id": change.id, "status": change.status},
            )
        if is_reached:
            following.end(change.id)
            if several:
                session.console.show_line(view_of_several(session, change.record, change.id))
            else:
                session.show(view_record(change.record, change.id, raw=session.options.raw))
    session.remember("transaction", dict.fromkeys(wanted))
    if following.left:
        raise _expired(session, following, deadline, goals)


def watch(
    context: typer.Context,
    ids: IdsArgument = None,
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="How long between two readings.")] = "5s",
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="TIME", help="How long in all: 90s, 10m, 2h (13).")
    ] = None,
) -> None:
    """Show each change of status, until Ctrl-C.

    It also ends when every escrow is released or failed; the profile says which statuses these are.

    \b
    Examples:
      escrowctl tx watch tx_7K2M9QHD
      escrowctl tx watch tx_7K2M9QHD tx_4W8KTN2C --interval 1m --json
    """
    session = session_of(context)
    wanted, _ = read_ids(ids, session.runtime.stdin)
    every = parse_duration(interval, name="--interval").total_seconds()
    seconds = parse_duration(deadline, name="--deadline").total_seconds() if deadline is not None else None
    last = session.service.released | session.service.failed
    session.remember("transaction", dict.fromkeys(wanted))
    following = _Following(session, wanted, "watching", seconds, every=every)
    for change in following.changes():
        session.console.show_line(change.view(timestamp(session.runtime.now())))
        if change.is_one_of(last):
            following.end(change.id)
    if following.left:
        raise _expired(session, following, deadline or "", None)


class _Change(NamedTuple):
    """A reading with another status than the one before. `before` is None for the first reading."""

    id: str
    before: str | None
    status: str
    record: Record

    def is_one_of(self, statuses: frozenset[str]) -> bool:
        """Whether the status is one of these, in any case."""
        return self.status.casefold() in statuses

    def __str__(self) -> str:
        return f"{self.before} -> {self.status}" if self.before is not None else self.status

    def view(self, at: str) -> View:
        """Return the change as one line of several."""
        named: dict[str, JsonValue] = {
            "at": at,
            "id": self.id,
            "status_before": self.before,
            "status_after": self.status,
        }
        line = f"{at[11:19]}Z  {self.id}  {self}"
        return View(named, self.id, named, line=line, named=named, record=self.record.value)


class _Following:
    """Reads escrows in rounds, until `end` was called for each or `seconds` have passed (None: for ever)."""

    def __init__(self, session: Session, ids: list[str], doing: str, seconds: float | None, *, every: float) -> None:
        session.service.refuse_key(*ids)
        self.left = list(dict.fromkeys(ids))
        self.statuses: dict[str, str] = {}
        self._session = session
        self._doing = doing
        self._pace = PollInterval(session.runtime, session.signals, seconds, every=every, tick=self._draw)

    def changes(self) -> Iterator[_Change]:
        """Yield each reading with another status. Raises EscrowctlError for a failure that is not temporary."""
        while True:
            for resource_id in [*self.left]:
                record = self._read(resource_id)
                status, before = (record.located.status if record else None), self.statuses.get(resource_id)
                if record is not None and status is not None and status != before:
                    self.statuses[resource_id] = status
                    yield _Change(resource_id, before, status, record)
            if not self.left or not self._pace.wait():
                return

    def end(self, resource_id: str) -> None:
        """Stop reading an escrow."""
        self.left.remove(resource_id)

    def describe(self, change: _Change) -> str:
        """Return a change as a sentence, with the time since the start."""
        after = f" after {describe_duration(self._pace.passed)}" if change.before is not None else ""
        return f"{change.id}: {change}{after}"

    def _read(self, resource_id: str) -> Record | None:
        """Return a record; None, with a note, if it cannot be read now. Raises EscrowctlError if not temporary."""
        try:
            record = self._session.reader.read(GET_TRANSACTION, resource_id, decides=True)
        except EscrowctlError as error:
            if error.code not in _MAY_PASS:
                raise
            self._session.console.note("not_read", error.message.removesuffix("."))
            return None
        require_escrow(resource_id, record)
        if record.located.status is None:
            self._session.console.note("no_status", f"escrowctl finds no status in the record of {resource_id}")
        return record

    def _draw(self, passed: float) -> None:
        one = self.left[0]
        what = f"{one} ({self.statuses.get(one, '?')})" if len(self.left) == 1 else f"{len(self.left)} escrows"
        self._session.console.draw_wait(f"{self._doing}: {what}", passed)


def _read_statuses(session: Session, text: str, *, name: str) -> frozenset[str]:
    """Return the statuses. "released" becomes the profile's released statuses: raises `BAD_VALUE` if none is set."""
    statuses = set(parse_statuses(text, name=name))
    if _RELEASED in statuses:
        statuses.remove(_RELEASED)
        statuses |= require_released_statuses(session, needed_by=f"{name} {_RELEASED}")
    return frozenset(statuses)


def _expired(session: Session, following: _Following, deadline: str, goals: str | None) -> EscrowctlError:
    """Return the `WAIT_EXPIRED` error: the status of each escrow, and a hint how to wait for it."""
    left, statuses = following.left, following.statuses
    known = [f"the status of {one} is {statuses.get(one, 'not known')}" for one in left[:_MOST_NAMED]]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    hints: list[Hint] = []
    found = sorted({statuses[one] for one in left if one in statuses})
    if goals is not None and found:
        words = ",".join(found)
        hints.append(Hint(f"repeat the command with --for {words}", f"if {words} is what you wait for"))
        if _RELEASED in parse_statuses(goals, name="--for") and not session.service.sandbox:
            # Never suggest a status that means released: a wrong one would report a false release.
            purpose = f"to change which statuses mean released (now {', '.join(sorted(session.service.released))})"
            hints += advise_setting(session.service, "status.released", "STATUS,...", purpose)
    return EscrowctlError(
        ErrorCode.WAIT_EXPIRED,
        f"the deadline ({deadline}) passed: {', '.join(known)}{more}.",
        hint=tuple(hints[:2]),
        facts={"statuses": {one: statuses.get(one) for one in left}},
    )
