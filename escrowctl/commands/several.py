"""Runs a command for several ids: a line of output for each, and one exit code for all."""

from collections import Counter
from collections.abc import Callable

from escrowctl.commands.advice import advise
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, OutputClosedError, Stopped, printing_result
from escrowctl.output.errors import make_error_document
from escrowctl.output.view import View
from escrowctl.session import Session


def run_several(session: Session, ids: list[str], run: Callable[[str], View], *, verb: str | None = None) -> None:
    """Call `run` for each id in turn, and show the view that it returns as a line.

    `verb` is the verb of a write, such as `release`; None for reads. An error of `run` is shown on stderr, and
    under `--json` and `--raw` on stdout too; then the next id follows. The loop ends early at a signal, if a line
    cannot be printed, or if the journal is unusable. If the line of a write cannot be printed, the error says that
    the write was accepted. Raises EscrowctlError with the counts at the end: `SOME_UNKNOWN` if any outcome is
    unknown, even after a signal; else `SOME_FAILED` if any id failed.
    """
    shown, failures = 0, list[EscrowctlError]()
    try:
        for resource_id in ids:
            try:
                with session.signals.held():
                    view = run(resource_id)
                    with printing_result(f"the {verb} of {resource_id} was accepted" if verb else None):
                        session.console.show_line(view)
                    # Inside `held()`: a waiting signal ends the loop only after this line is counted.
                    shown += 1
            except EscrowctlError as error:
                if error.code in (ErrorCode.RESULT_NOT_PRINTED, ErrorCode.OUTPUT_UNUSABLE):
                    raise
                failures.append(error)
                _show_failure(session, resource_id, error, verb)
                # A signal that arrived during `run` ends the loop here.
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
        counts = _describe_counts(shown, failures, len(ids), verb)
        raise EscrowctlError(
            ErrorCode.SOME_UNKNOWN if is_unknown else ErrorCode.SOME_FAILED,
            f"{'1 id' if len(ids) == 1 else f'{len(ids)} ids'}: {counts}.",
            outcome=Outcome.UNKNOWN if is_unknown else None,
        )


def _show_failure(session: Session, resource_id: str, error: EscrowctlError, verb: str | None) -> None:
    if verb:
        error.subject = resource_id
    session.console.error(advise(error, session))
    if session.options.json or session.options.raw:
        document = make_error_document(error, session.invocation)
        outcome = error.outcome.value if error.outcome else Outcome.NOT_SENT.value if verb else "failed"
        session.console.write_json({"id": resource_id, "outcome": outcome, **document})


def _describe_counts(shown: int, failures: list[EscrowctlError], total: int, verb: str | None) -> str:
    """Return how many of the `total` ids had each outcome, as text. `shown` ids succeeded."""
    not_tried = total - shown - len(failures)
    if verb is None:
        return f"{shown} read, {len(failures)} failed" + (f", {not_tried} not read" if not_tried else "")
    counts = Counter(error.outcome or Outcome.NOT_SENT for error in failures)
    counts += Counter({Outcome.DONE: shown, Outcome.NOT_SENT: not_tried})
    # The service accepted these, but they are not confirmed.
    unconfirmed = sum(error.outcome is Outcome.DONE for error in failures)
    of_these = f" ({unconfirmed} not confirmed)" if unconfirmed else ""
    return (
        f"{counts[Outcome.DONE]} done{of_these}, {counts[Outcome.REFUSED]} refused, {counts[Outcome.UNKNOWN]} unknown, "
        f"{counts[Outcome.NOT_SENT]} not sent"
    )
