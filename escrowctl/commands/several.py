"""One command over several ids: a line each, and one exit code for all."""

from collections import Counter
from collections.abc import Callable

from escrowctl.commands.advice import advise
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, OutputClosedError, Stopped, printing_result
from escrowctl.output.errors import error_document
from escrowctl.output.view import View
from escrowctl.session import Session

_NOTHING_MORE_CAN_BE_SHOWN = (ErrorCode.RESULT_NOT_PRINTED, ErrorCode.OUTPUT_UNUSABLE)


def run_several(session: Session, ids: list[str], work: Callable[[str], View], *, verb: str | None = None) -> None:
    """Do `work` for each id in turn and show each line as it comes.

    Under `--json` and `--raw` each line is an object with its `outcome`. In other formats a failure goes to stderr.
    A failure does not end the loop. A signal, a line that cannot be printed and an unusable journal do.
    Raises EscrowctlError at the end, with the counts: `SOME_UNKNOWN` if any outcome is unknown (even
    after a signal), else `SOME_FAILED` if any failed. `verb`, such as `release`: the work is a write,
    whose result must be reported even if its line cannot be printed.
    """
    shown, failures = 0, list[EscrowctlError]()
    try:
        for resource_id in ids:
            try:
                with session.signals.held():
                    view = work(resource_id)
                    with printing_result(f"the {verb} of {resource_id} was accepted" if verb else None):
                        session.console.show_line(view)
                    # Before a signal that was held ends the loop: the line counts.
                    shown += 1
            except EscrowctlError as error:
                if error.code in _NOTHING_MORE_CAN_BE_SHOWN:
                    raise
                failures.append(error)
                _show_failure(session, resource_id, error, verb)
                # A signal that came meanwhile ends the loop here.
                session.signals.resume()
                if error.code is ErrorCode.JOURNAL_UNUSABLE:
                    break
    except Stopped:
        if not any(error.outcome is Outcome.UNKNOWN for error in failures):
            raise
    except OutputClosedError:
        if not failures:
            raise
    if failures:
        is_unknown = any(error.outcome is Outcome.UNKNOWN for error in failures)
        counts = _describe(shown, failures, len(ids), verb)
        raise EscrowctlError(
            ErrorCode.SOME_UNKNOWN if is_unknown else ErrorCode.SOME_FAILED,
            f"{'1 id' if len(ids) == 1 else f'{len(ids)} ids'}: {counts}.",
            outcome=Outcome.UNKNOWN if is_unknown else None,
        )


def _show_failure(session: Session, resource_id: str, error: EscrowctlError, verb: str | None) -> None:
    if verb:
        error.subject = resource_id
    session.console.error(advise(error, session), session.invocation)
    if session.options.json or session.options.raw:
        document = error_document(error, session.invocation)
        outcome = error.outcome.value if error.outcome else Outcome.NOT_SENT.value if verb else "failed"
        session.console.document({"id": resource_id, "outcome": outcome, **document})


def _describe(shown: int, failures: list[EscrowctlError], total: int, verb: str | None) -> str:
    """Return the counts by outcome as text. They add up to the total."""
    left = total - shown - len(failures)
    if verb is None:
        return f"{shown} read, {len(failures)} failed" + (f", {left} not read" if left else "")
    counts = Counter(error.outcome or Outcome.NOT_SENT for error in failures)
    counts += Counter({Outcome.DONE: shown, Outcome.NOT_SENT: left})
    # Done, but not (yet) as requested.
    unconfirmed = sum(error.outcome is Outcome.DONE for error in failures)
    accepted = f" ({unconfirmed} not confirmed)" if unconfirmed else ""
    return (
        f"{counts[Outcome.DONE]} done{accepted}, {counts[Outcome.REFUSED]} refused, {counts[Outcome.UNKNOWN]} unknown, "
        f"{counts[Outcome.NOT_SENT]} not sent"
    )
