"""One command over several ids: a line each, and one exit code for all."""

from collections.abc import Callable

from escrowctl.contract.number import JsonValue
from escrowctl.errors import ErrorCode, EscrowctlError, Sending, Stopped
from escrowctl.output.console import OutputClosedError
from escrowctl.output.trouble import error_document
from escrowctl.output.view import View
from escrowctl.session import Session

_NOTHING_MORE_CAN_BE_SHOWN = (ErrorCode.RESULT_NOT_PRINTED, ErrorCode.OUTPUT_UNUSABLE)


def run_several(
    session: Session, ids: list[str], work: Callable[[str], View], *, failed: str, done: str | None = None
) -> None:
    """Do `work` for each id in turn and show each line as it comes.

    Under `--json` each line is an object with its `outcome`; elsewhere a failure goes to stderr and
    the rows are lines. Goes on after a failure, but not after a signal, nor where a line cannot be
    printed. Raises EscrowctlError at the end: 12 where any is unknown (it outranks a signal), else
    15 where any failed; `failed` completes "2 of 5 ...". `done` completes "ID ..." and says that the
    work was a write, whose line must not get lost.
    """
    run = _Run(session, work, done)
    try:
        for resource_id in ids:
            run.do(resource_id)
    except Stopped:
        if not run.unknown:
            raise
    except OutputClosedError:
        if not run.failures:
            raise
    _raise_worst(run, total=len(ids), failed=failed)


class _Run:
    def __init__(self, session: Session, work: Callable[[str], View], done: str | None) -> None:
        self._session = session
        self._work = work
        self._done = done
        self.attempted = 0
        self.failures: list[EscrowctlError] = []

    @property
    def unknown(self) -> int:
        return sum(error.sending is Sending.UNKNOWN for error in self.failures)

    def do(self, resource_id: str) -> None:
        """Work on one id and show its line, or keep its failure."""
        self.attempted += 1
        session = self._session
        try:
            with session.signals.held():
                view = self._work(resource_id)
                with session.accounting_for(f"{resource_id} {self._done}" if self._done else None):
                    session.console.show_line(view)
        except EscrowctlError as error:
            if error.code in _NOTHING_MORE_CAN_BE_SHOWN:
                raise
            self.failures.append(error)
            session.console.error(error)
            if session.options.json:
                session.console.document(_failed_line(resource_id, error))
            session.signals.resume()


def _failed_line(resource_id: str, error: EscrowctlError) -> JsonValue:
    outcome = error.sending.value if error.sending else "failed"
    document = error_document(error)
    assert isinstance(document, dict)
    return {"id": resource_id, "outcome": outcome, **document}


def _raise_worst(run: _Run, *, total: int, failed: str) -> None:
    if not run.failures:
        return
    left = f" {total - run.attempted} were not attempted." if run.attempted < total else ""
    raise EscrowctlError(
        ErrorCode.SOME_UNKNOWN if run.unknown else ErrorCode.SOME_FAILED,
        f"{len(run.failures)} of {total} {failed}, {run.unknown} unknown.{left}",
        sending=Sending.UNKNOWN if run.unknown else None,
    )
