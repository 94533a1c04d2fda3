"""Treat rows that were sent before: refuse them, leave them out, or repeat them on purpose."""

import shlex
from collections import defaultdict
from collections.abc import Sequence

from escrowctl.batch.check import MOST_FLAWS, CheckedFile
from escrowctl.batch.overlaps import Overlaps
from escrowctl.batch.rows import CREATES, RowContent, RowKind, list_differences
from escrowctl.batch.table import Flaw
from escrowctl.commands.batch.opening import list_flaws
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Outcome, command, not_sent
from escrowctl.journal.model import Entry, State
from escrowctl.runtime import ago
from escrowctl.session import Session

_MOST_NAMED = 5


def choose_rows(
    session: Session, checked: CheckedFile, found: Overlaps, *, skip_done: bool
) -> tuple[dict[int, tuple[int, ...]], set[int]]:
    """Return two results: a map from line to the entries of other runs that it repeats; the lines to leave out.

    Raises EscrowctlError `ALREADY_DONE` if rows are done without `skip_done`, or done otherwise than the file says;
    `EARLIER_UNKNOWN`, `BUSY` or `CONFLICT` for rows that may have been sent, or that another batch may still send.
    """
    _refuse_open(checked, found)
    _refuse_different(session, checked, found)
    left_out = {line for line, _ in found.done}
    if left_out and not skip_done:
        line, entry = found.done[0]
        when = ago(entry.settled_at or entry.sent_at, session.runtime.now())
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"done already: {len(left_out):,} of these {checked.rows:,} rows (same {checked.kind.key}); "
            f"line {line} is {entry.name}, {when}.",
            hint=Hint("repeat the command with --skip-done", "to leave them out"),
            facts={"lines": sorted(left_out)[:_MOST_NAMED]},
        )
    repeats: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    for line, entry in found.repeated:
        if line not in left_out:
            repeats[line] += (entry.number,)
    return repeats, left_out


def _refuse_different(session: Session, checked: CheckedFile, found: Overlaps) -> None:
    """Raise `ALREADY_DONE`, with every such line, if entries were done otherwise than their rows say."""
    done: defaultdict[int, list[Entry]] = defaultdict(list)
    for line, entry in found.done:
        done[line].append(entry)
    flaws = []
    for line, row in checked:
        differences = [(entry, _find_difference(session, checked.kind, row, entry)) for entry in done.get(line, ())]
        # One matching entry is enough: other runs may have done the row otherwise.
        if differences and all(why for _, why in differences):
            entry, why = differences[0]
            flaws.append(Flaw(line, f"{entry.name} is done, {why}"))
    if not flaws:
        return
    list_flaws(session, flaws[:MOST_FLAWS])
    raise not_sent(
        ErrorCode.ALREADY_DONE,
        f"{_name_lines(flaws)}: what is done is not what the file says.",
        hint="correct or remove what differs",
        facts={"flaws": [flaw._asdict() for flaw in flaws[:_MOST_NAMED]]},
    )


def _find_difference(session: Session, kind: RowKind, row: RowContent, entry: Entry) -> str:
    """Return the difference between an entry and its row, as text; empty if there is none."""
    if entry.settlement.remark is not None:
        return f"but {entry.settlement.remark}"
    was, now = entry.intent.money, row.money
    if was is not None and now is not None and (was.amount, was.currency) != (now.amount, now.currency):
        return f"with {was.amount} {was.currency}; the file says {now.amount} {now.currency}"
    names = list_differences(row, entry, session.service) if kind is CREATES else []
    return f"but its body differs from the file in {', '.join(names)}" if names else ""


def _refuse_open(checked: CheckedFile, found: Overlaps) -> None:
    """Refuse rows with an open earlier write, whatever the operator chose.

    Raises `EARLIER_UNKNOWN` (outcome unknown), `BUSY` (in flight), or `CONFLICT` (similar entry, or in another batch).
    """
    key = checked.kind.key
    same = f"same {key if checked.has_keys else 'row'}"
    if found.unknown:
        line, entry = found.unknown[0]
        lines = _name_lines(found.unknown)
        if all(one.state is State.IN_FLIGHT for _, one in found.unknown):
            raise not_sent(ErrorCode.BUSY, f"another process is sending {lines} of this file ({same}).")
        raise EscrowctlError(
            ErrorCode.EARLIER_UNKNOWN,
            f"{lines}: sent before ({same}), and the outcome is unknown.",
            effect=Effect.NOTHING_SENT,
            hint=(
                command(f"journal resolve {entry.name}", f"to resolve {entry.name} (line {line})"),
                command("journal list --unknown", "to see all that are unknown"),
            ),
            outcome=Outcome.UNKNOWN,
            facts=entry.facts,
        )
    if found.other:
        entry = found.other[0][1]
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{_name_lines(found.other)} may have been sent before: with another API key, or under another spelling of "
            f"the {key} ({entry.name}).",
            hint=command(f"tx get {shlex.quote(entry.record_id)}", "to see what the service reports")
            if entry.record_id
            else command(f"journal show {entry.name}"),
        )
    if found.planned:
        name = found.planned[0][1].name
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{_name_lines(found.planned)}: planned in {name} too, and not sent yet (same {key}).",
            hint=(
                command(f"batch resume {name}", "to send them as they were in that file"),
                command(f"batch drop {name}", "to drop the rest of it, then send this file"),
            ),
        )


def _name_lines(found: Sequence[tuple[int, object]]) -> str:
    if len(found) == 1:
        return f"line {found[0][0]}"
    named = ", ".join(str(line) for line, _ in found[:_MOST_NAMED])
    return f"lines {named}" + (f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else "")
