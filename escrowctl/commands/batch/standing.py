"""What became of a batch: shown as a table or as one document, and as the error and exit code that follow from it."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from escrowctl.batch.check import Sum, count_rows
from escrowctl.batch.plan import Batch, Outcomes, Standing, outcome_of, take_standing
from escrowctl.batch.results import write_results
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import NOTHING_SENT_NOW, ErrorCode, EscrowctlError, Hint, Outcome, command, not_sent
from escrowctl.journal.model import Entry, Selection, State
from escrowctl.output.view import Listing, View
from escrowctl.runtime import ago
from escrowctl.session import Session

_PAGE = 500
_MOST_LINES, _MOST_REASONS = 5, 3


def summarise(standing: Standing) -> dict[str, JsonValue]:
    """Return a batch's counts, which add up to its rows."""
    counts = {outcome.value: standing.count(outcome) for outcome in Outcomes}
    document: dict[str, JsonValue] = {"batch": standing.batch.name, "rows": _number(standing.batch.rows)}
    return document | {name: _number(count) for name, count in counts.items()}


def show_standing(session: Session, standing: Standing) -> None:
    """Show the rows and amounts by outcome."""
    document = summarise(standing)
    if session.options.quiet and not session.options.json:
        session.console.show(View(document, standing.batch.name))
        return
    currencies = sorted({currency for _, currency in standing.sums if currency})
    views = []
    for outcome in Outcomes:
        named: dict[str, JsonValue] = {"outcome": outcome.value.replace("_", " "), "rows": document[outcome.value]}
        named |= {code: Number(f"{standing.sums.get((outcome, code), Sum()).amount:f}") for code in currencies}
        views.append(View(named, standing.batch.name, named=named))
    session.console.show_listing(Listing(("outcome", "rows", *currencies), tuple(views), document))


def save_results(session: Session, batch: Batch, path: Path) -> None:
    """Write the results file and say so; where that fails, what was sent is shown all the same."""
    try:
        count = write_results(session.journal, batch, path)
    except OSError as error:
        again = f"to try again: {session.invocation} batch show {batch.name} --results FILE"
        session.console.note(
            "results", f"{path} could not be written: {error.strerror}; {again}", word="warning", important=True
        )
        return
    session.console.note("results", f"{path}: {count_rows(count)}")


def finished_before(session: Session, batch: Batch) -> EscrowctlError:
    """Return the refusal of a file that has nothing left to send."""
    standing = take_standing(session.journal, batch)
    counts = ", ".join(
        f"{standing.count(one):,} {one.value.replace('_', ' ')}" for one in Outcomes if standing.count(one)
    )
    unknown = standing.count(Outcomes.UNKNOWN)
    when = ago(batch.made_at, session.runtime.now())
    hints: list[Hint] = []
    if unknown:
        hints.append(command("journal list --unknown", "to see what is unknown"))
    if standing.count(Outcomes.FAILED):
        hints.append(command(f"batch rejects {batch.name}", "to see the failed rows"))
    if standing.count(Outcomes.NOT_SENT):
        hints += _hints_for_unsent(session, batch)
    if batch.verb == "create":
        hints.append(Hint("repeat the command with --run-key TEXT", f"to send all {batch.rows:,} again on purpose"))
    message = f"{batch.source} was sent as {batch.name}, {when}: {counts}."
    if not unknown:
        return not_sent(ErrorCode.ALREADY_DONE, message, hint=tuple(hints))
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN, message, effect=NOTHING_SENT_NOW, hint=tuple(hints), outcome=Outcome.UNKNOWN
    )


def raise_standing(session: Session, standing: Standing, *, remarks: int) -> None:
    """Raise what a batch ends with where not every row is done: 12, 15, or 16 where some differ from what was sent."""
    batch, name = standing.batch, standing.batch.name
    failed, unknown, left = (standing.count(one) for one in (Outcomes.FAILED, Outcomes.UNKNOWN, Outcomes.NOT_SENT))
    if not (failed or unknown or left):
        if remarks:
            raise EscrowctlError(
                ErrorCode.CHECK_FAILED,
                f"{name}: all {count_rows(batch.rows)} done, but {remarks:,} not with the expected result (see above).",
                hint=command(f"batch show {name} --results FILE.csv", "to see each row"),
                outcome=Outcome.DONE,
            )
        return
    hints: list[Hint] = []
    if unknown:
        _explain(session, batch, Outcomes.UNKNOWN)
        hints.append(command("journal list --unknown", "to resolve what is unknown"))
    if failed:
        _explain(session, batch, Outcomes.FAILED)
        hints.append(
            command(f"batch rejects {name} > rejects.csv", f"correct them, then batch {batch.verb} rejects.csv")
        )
    if left:
        hints += _hints_for_unsent(session, batch)
    counts = [(unknown, "unknown"), (failed, "failed"), (left, "not sent")]
    told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    raise EscrowctlError(
        ErrorCode.SOME_UNKNOWN if unknown else ErrorCode.SOME_FAILED,
        f"{name}: {told}, of {count_rows(batch.rows)}.",
        hint=tuple(hints),
        outcome=Outcome.UNKNOWN if unknown else None,
        facts=dict(summarise(standing)),
    )


def _hints_for_unsent(session: Session, batch: Batch) -> list[Hint]:
    """Return how the rest is sent; rows that were throttled need a setting first."""
    resume = command(f"batch resume {batch.name}", "to send what is not sent")
    if session.service.repeats_throttled or not any(
        entry.settlement.may_repeat for entry in _entries(session, batch, State.REFUSED)
    ):
        return [resume]
    setting = command("config set retry_throttled true", "if a 429 of this service means that nothing was done, first")
    return [setting, resume._replace(label="then")]


def _explain(session: Session, batch: Batch, outcome: Outcomes) -> None:
    """Say which rows failed, or are unknown, and why: those with the same reason in one line."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    states = (State.UNKNOWN, State.IN_FLIGHT) if outcome is Outcomes.UNKNOWN else (State.REFUSED,)
    for entry in _entries(session, batch, *states):
        if outcome_of(entry) is outcome:
            named = f"{entry.intent.line} ({entry.name})" if outcome is Outcomes.UNKNOWN else str(entry.intent.line)
            lines[entry.settlement.detail].append(named)
    for detail, found in sorted(lines.items(), key=lambda one: -len(one[1]))[:_MOST_REASONS]:
        named = ", ".join(reversed(found[-_MOST_LINES:]))
        more = f" and {len(found) - _MOST_LINES:,} more" if len(found) > _MOST_LINES else ""
        text = f"{'line' if len(found) == 1 else 'lines'} {named}{more}: {detail}"
        session.console.note(outcome.value, text, word=outcome.value, important=True)


def _entries(session: Session, batch: Batch, *states: State) -> Iterable[Entry]:
    return session.journal.all(Selection(_PAGE, states=states, batch=batch.name))


def _number(count: int) -> Number:
    return Number(str(count))
