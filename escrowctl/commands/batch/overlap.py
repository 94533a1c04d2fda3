"""What is done about rows that were sent before: refused, left out, or repeated on purpose."""

import shlex

from escrowctl.batch.check import CheckedFile
from escrowctl.batch.plan import Overlaps
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Hint, Outcome, command, not_sent
from escrowctl.journal.model import Entry, State
from escrowctl.runtime import ago
from escrowctl.session import Session

_MOST_NAMED = 5


def skip_done(session: Session, checked: CheckedFile, found: Overlaps, *, skips: bool) -> set[int]:
    """Return the lines of rows to leave out: those that are done, where they may be left out.

    Raises EscrowctlError: `ALREADY_DONE` where they may not, and as `_refuse_open`.
    """
    _refuse_open(checked, found)
    lines = {line for line, _ in found.done}
    if not lines or skips:
        return lines
    count, of, key = len(lines), f"{checked.rows:,}", checked.kind.key
    entry = found.done[0][1]
    when = ago(entry.settled_at or entry.sent_at, session.runtime.now())
    whom = {one.intent.batch or "a single command" for _, one in found.done}
    by = f"by {whom.pop()}, {when}" if len(whom) == 1 else f"by {len(whom)} batches or commands"
    were = "was" if count == 1 else "were"
    rest = checked.rows - count
    hints = [Hint("repeat the command with --skip-done", f"to send only the other {rest:,}")] if rest else []
    if key == "reference":
        hints.append(Hint("repeat the command with --run-key TEXT", f"to send all {of} again on purpose"))
    raise not_sent(
        ErrorCode.ALREADY_DONE,
        f"{count:,} of these {of} rows {were} done {by} (same {key}).",
        hint=tuple(hints),
        facts={"lines": sorted(lines)[:_MOST_NAMED]},
    )


def repeat_done(checked: CheckedFile, found: Overlaps) -> dict[int, tuple[int, ...]]:
    """Return, by line, the entries that rows repeat on purpose; raises EscrowctlError as `_refuse_open`."""
    _refuse_open(checked, found)
    repeats: dict[int, tuple[int, ...]] = {}
    for line, entry in found.done:
        repeats[line] = (*repeats.get(line, ()), entry.number)
    return repeats


def _refuse_open(checked: CheckedFile, found: Overlaps) -> None:
    """Raise EscrowctlError for rows that may have happened, may yet be sent by another batch, or may be another's.

    `EARLIER_UNKNOWN`, `BUSY` or `CONFLICT`: nothing skips those.
    """
    key = checked.kind.key
    if found.unknown:
        in_flight = [one for one in found.unknown if one[1].state is State.IN_FLIGHT]
        line, entry = found.unknown[0]
        if len(in_flight) == len(found.unknown):
            raise not_sent(ErrorCode.BUSY, f"another process is sending {_rows(in_flight)} of this file (same {key}).")
        raise EscrowctlError(
            ErrorCode.EARLIER_UNKNOWN,
            f"it is unknown what became of {_rows(found.unknown)}, sent before (same {key}).",
            effect=NOTHING_SENT,
            hint=(
                command(f"journal resolve {entry.name}", f"to resolve {entry.name} (line {line})"),
                command("journal list --unknown", "to see all that are unknown"),
            ),
            outcome=Outcome.UNKNOWN,
            facts=entry.facts,
        )
    if found.other:
        _, entry = found.other[0]
        why = f"may have been sent before: with another API key, or under an {key} that looks alike ({entry.name})"
        resource_id = entry.settlement.result_id or entry.intent.resource_id
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{_rows(found.other)} {why}.",
            hint=command(f"tx get {shlex.quote(resource_id)}", "to see what the service reports")
            if resource_id
            else command(f"journal show {entry.name}"),
        )
    if found.planned:
        batch = found.planned[0][1]
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{_named([line for line, _ in found.planned])} {'is' if len(found.planned) == 1 else 'are'} also in "
            f"{batch.name}, which has not sent {'it' if len(found.planned) == 1 else 'them'} yet (same {key}).",
            hint=(
                command(f"batch resume {batch.name}", "to send the rest of it"),
                command(f"batch drop {batch.name}", "to give up the rest of it"),
            ),
        )


def _rows(found: list[tuple[int, Entry]]) -> str:
    return _named([line for line, _ in found])


def _named(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    named = ", ".join(str(line) for line in lines[:_MOST_NAMED])
    return f"lines {named}" + (f" and {len(lines) - _MOST_NAMED:,} more" if len(lines) > _MOST_NAMED else "")
