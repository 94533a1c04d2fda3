"""Decide about the rows of a file that were sent before: refuse them, leave them out, or send them again."""

import shlex
from collections import defaultdict
from collections.abc import Sequence

from escrowctl.batch.check import MAX_SHOWN_FLAWS, CheckedFile
from escrowctl.batch.overlaps import Overlaps
from escrowctl.batch.rows import CREATES, RowContent, RowKind, list_body_differences
from escrowctl.batch.table import Flaw
from escrowctl.commands.batch.opening import print_flaws
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Outcome, command, not_sent
from escrowctl.journal.model import Entry, State
from escrowctl.runtime import describe_age
from escrowctl.session import Session

_MAX_NAMED_LINES = 5


def decide_overlaps(
    session: Session, checked: CheckedFile, overlaps: Overlaps, *, skip_done: bool
) -> tuple[dict[int, tuple[int, ...]], set[int]]:
    """Return line -> numbers of the entries of other runs that the line repeats; and the lines to leave out.

    The lines to leave out are done. Raises `ALREADY_DONE` if there are such lines, but `skip_done` is False, or if
    their values differ. Raises `EARLIER_UNKNOWN`, `BUSY` or `CONFLICT` if another write or batch may send a row.
    """
    _refuse_conflicting_rows(checked, overlaps)
    _refuse_rows_done_differently(session, checked, overlaps)
    left_out = {line for line, _ in overlaps.done}
    if left_out and not skip_done:
        line, entry = overlaps.done[0]
        when = describe_age(entry.settled_at or entry.sent_at, session.runtime.now())
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"done already: {len(left_out):,} of these {checked.rows:,} rows (same {checked.kind.key_column}); "
            f"line {line} was done as {entry.name}, {when}.",
            hint=Hint("repeat the command with --skip-done", "to leave them out"),
            facts={"lines": sorted(left_out)[:_MAX_NAMED_LINES]},
        )
    repeats: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    for line, entry in overlaps.repeated:
        if line not in left_out:
            repeats[line] += (entry.number,)
    return repeats, left_out


def _refuse_rows_done_differently(session: Session, checked: CheckedFile, overlaps: Overlaps) -> None:
    """Raise `ALREADY_DONE` if rows are done with other values than the file has. Print the lines of these rows."""
    done: defaultdict[int, list[Entry]] = defaultdict(list)
    for line, entry in overlaps.done:
        done[line].append(entry)
    flaws = []
    for row in checked if done else ():
        differences = [_describe_difference(session, checked.kind, row, entry) for entry in done.get(row.line, ())]
        # One entry that matches the row is enough: other runs may have done it with other values.
        if differences and all(differences):
            flaws.append(Flaw(row.line, differences[0]))
    if not flaws:
        return
    print_flaws(session, flaws[:MAX_SHOWN_FLAWS])
    message = f"{_describe_lines(flaws)}: already done, but not as the file says."
    facts = {"flaws": [flaw._asdict() for flaw in flaws[:_MAX_NAMED_LINES]]}
    raise not_sent(ErrorCode.ALREADY_DONE, message, hint="correct or remove these rows", facts=facts)


def _describe_difference(session: Session, kind: RowKind, row: RowContent, entry: Entry) -> str:
    """Return how a done entry differs from its row: a sentence without full stop, or "" if they agree."""
    if entry.settlement.remark is not None:
        return f"{entry.name} is done, but {entry.settlement.remark}"
    sent, wanted = entry.intent.money, row.money
    if sent is not None and wanted is not None and (sent.amount, sent.currency) != (wanted.amount, wanted.currency):
        return f"{entry.name} is done with {sent}, but the file says {wanted}"
    fields = list_body_differences(row, entry, session.service) if kind is CREATES else []
    return f"{entry.name} is done, but its body differs from the file in {', '.join(fields)}" if fields else ""


def _refuse_conflicting_rows(checked: CheckedFile, overlaps: Overlaps) -> None:
    """Refuse rows that may have been sent, or that an unfinished batch may still send. No option allows them.

    Raises `EARLIER_UNKNOWN` if the outcome of earlier writes is unknown, `BUSY` if all of these are in flight.
    Raises `CONFLICT` if a write with another API key or id spelling may be the same, or if a batch plans the row.
    """
    key = checked.kind.key_column
    same = f"same {key if checked.has_keys else 'row'}"
    if overlaps.unknown:
        line, entry = overlaps.unknown[0]
        lines = _describe_lines(overlaps.unknown)
        if all(one.state is State.IN_FLIGHT for _, one in overlaps.unknown):
            raise not_sent(ErrorCode.BUSY, f"another process is sending {lines} of this file ({same}).")
        raise EscrowctlError(
            ErrorCode.EARLIER_UNKNOWN,
            f"{lines} may have been sent before ({same}): the outcome is unknown.",
            effect=Effect.NOTHING_SENT,
            hint=(
                command(f"journal resolve {entry.name}", f"to resolve {entry.name} (line {line})"),
                command("journal list --unknown", "to see all unknown writes"),
            ),
            outcome=Outcome.UNKNOWN,
            facts=entry.facts,
        )
    if overlaps.other:
        entry, lines = overlaps.other[0][1], _describe_lines(overlaps.other)
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{lines} may have been sent before, with another API key, another spelling of the {key} or another "
            f"command: see {entry.name}.",
            hint=command(f"tx get {shlex.quote(entry.record_id)}", "to see what the service reports")
            if entry.record_id
            else command(f"journal show {entry.name}"),
        )
    if overlaps.planned:
        name, lines = overlaps.planned[0][1].name, _describe_lines(overlaps.planned)
        message = f"batch {name} may still send {lines} of this file (same {key})."
        resume = command(f"batch resume {name}", f"to send the unsent rows of {name}")
        drop = command(f"batch drop {name}", "or, to drop them before you send this file")
        raise not_sent(ErrorCode.CONFLICT, message, hint=(resume, drop))


def _describe_lines(rows: Sequence[tuple[int, object]]) -> str:
    lines = [str(line) for line, _ in rows]
    if len(lines) == 1:
        return f"line {lines[0]}"
    more = f" and {len(lines) - _MAX_NAMED_LINES:,} more" if len(lines) > _MAX_NAMED_LINES else ""
    return f"lines {', '.join(lines[:_MAX_NAMED_LINES])}{more}"
