"""Treat rows that were sent before: refuse them, leave them out, or repeat them on purpose."""

import shlex
from collections import defaultdict
from typing import NamedTuple

from escrowctl.batch.check import MOST_FLAWS, CheckedFile
from escrowctl.batch.overlaps import Overlaps
from escrowctl.batch.rows import CREATES, RowContent, RowKind, list_differences
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Hint, Outcome, command, not_sent
from escrowctl.journal.model import Entry, State
from escrowctl.output.plain import safe
from escrowctl.runtime import ago
from escrowctl.session import Session

_MOST_NAMED = 5


class Chosen(NamedTuple):
    """The operator's choice for done rows: `skip_done` leaves them out; `run_key` repeats those of other runs."""

    skip_done: bool
    run_key: str | None = None


def choose_rows(
    session: Session, checked: CheckedFile, found: Overlaps, chosen: Chosen
) -> tuple[dict[int, tuple[int, ...]], set[int]]:
    """Return two results: a map from line to the entries of other runs that it repeats; the lines to leave out.

    Raises EscrowctlError `ALREADY_DONE` if rows are done without `skip_done`, or done otherwise than the file says;
    `EARLIER_UNKNOWN`, `BUSY` or `CONFLICT` for rows that may have been sent, or that another batch may still send.
    """
    _refuse_open(checked, found)
    _refuse_different(session, checked, found)
    if found.done and not chosen.skip_done:
        raise _done_already(session, checked, found)
    left_out = {line for line, _ in found.done}
    repeats: dict[int, tuple[int, ...]] = {}
    for line, entry in found.repeated:
        if line not in left_out:
            repeats[line] = (*repeats.get(line, ()), entry.number)
    return repeats, left_out


def _done_already(session: Session, checked: CheckedFile, found: Overlaps) -> EscrowctlError:
    lines = {line for line, _ in found.done}
    count, of, key = len(lines), f"{checked.rows:,}", checked.kind.key
    entry = found.done[0][1]
    when = ago(entry.settled_at or entry.sent_at, session.runtime.now())
    batches = {_sender(one) for _, one in found.done}
    by = f"by {batches.pop()}, {when}" if len(batches) == 1 else f"by {len(batches)} batches or commands"
    were = "was" if count == 1 else "were"
    rest = checked.rows - count
    hint = Hint(
        "repeat the command with --skip-done", f"to send only the other {rest:,}" if rest else "for exit code 0"
    )
    return not_sent(
        ErrorCode.ALREADY_DONE,
        f"{count:,} of these {of} rows {were} done {by} (same {key}).",
        hint=hint,
        facts={"lines": sorted(lines)[:_MOST_NAMED]},
    )


def _sender(entry: Entry) -> str:
    # Batches of two journals may have the same name.
    return "another journal" if entry.origin else entry.intent.batch or "a single command"


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
            flaws.append((line, f"{entry.name} is done, {why}"))
    if not flaws:
        return
    if not session.options.json:
        for line, why in flaws[:MOST_FLAWS]:
            session.console.report(safe(f"  line {line}  {why}"))
    raise not_sent(
        ErrorCode.ALREADY_DONE,
        f"{_named([line for line, _ in flaws])}: what is done is not what the file says.",
        hint="correct or remove what differs",
        facts={"flaws": [{"line": line, "why": why} for line, why in flaws[:_MOST_NAMED]]},
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
        in_flight = [one for one in found.unknown if one[1].state is State.IN_FLIGHT]
        line, entry = found.unknown[0]
        if len(in_flight) == len(found.unknown):
            raise not_sent(ErrorCode.BUSY, f"another process is sending {_rows(in_flight)} of this file (same {key}).")
        raise EscrowctlError(
            ErrorCode.EARLIER_UNKNOWN,
            f"it is unknown what became of {_rows(found.unknown)}, sent before ({same}).",
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
        alike = f"another spelling of the {key}"
        why = f"may have been sent before: with another API key, or under {alike} ({entry.name})"
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
                command(f"batch resume {batch.name}", "to send them as they were in that file"),
                command(f"batch drop {batch.name}", "to drop the rest of it, then send this file"),
            ),
        )


def _rows(found: list[tuple[int, Entry]]) -> str:
    return _named([line for line, _ in found])


def _named(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    named = ", ".join(str(line) for line in lines[:_MOST_NAMED])
    return f"lines {named}" + (f" and {len(lines) - _MOST_NAMED:,} more" if len(lines) > _MOST_NAMED else "")
