"""One command over several ids: a line each, and one exit code for all."""

from collections.abc import Callable

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, OutputClosedError, Stopped, effect_on
from escrowctl.output.errors import error_document
from escrowctl.output.view import View
from escrowctl.session import Session

_NOTHING_MORE_CAN_BE_SHOWN = (ErrorCode.RESULT_NOT_PRINTED, ErrorCode.OUTPUT_UNUSABLE)


def run_several(session: Session, ids: list[str], work: Callable[[str], View], *, verb: str | None = None) -> None:
    """Do `work` for each id in turn and show each line as it comes.

    Under `--json` and `--raw` each line is an object with its `outcome`; elsewhere a failure goes to stderr and
    the rows are lines. Goes on after a failure, but not after a signal, nor where a line cannot be
    printed or the journal cannot be used. Raises EscrowctlError at the end, with counts that add up:
    12 where any is unknown (it outranks a signal), else 15 where any failed. `verb` (`release`) says
    that the work is a write, whose line must not get lost.
    """
    run = _Run(session, work, verb)
    try:
        for resource_id in ids:
            run.do(resource_id)
            if run.ended:
                break
    except Stopped:
        if not run.unknown:
            raise
    except OutputClosedError:
        if not run.failures:
            raise
    if run.failures:
        counts = run.describe(len(ids))
        raise EscrowctlError(
            ErrorCode.SOME_UNKNOWN if run.unknown else ErrorCode.SOME_FAILED,
            f"{'1 id' if len(ids) == 1 else f'{len(ids)} ids'}: {counts}.",
            outcome=Outcome.UNKNOWN if run.unknown else None,
        )


class _Run:
    def __init__(self, session: Session, work: Callable[[str], View], verb: str | None) -> None:
        self._session = session
        self._work = work
        self._verb = verb
        self.shown = 0
        self.failures: list[EscrowctlError] = []

    @property
    def ended(self) -> bool:
        """Whether the last failure leaves nothing that could be done for the others."""
        return bool(self.failures) and self.failures[-1].code is ErrorCode.JOURNAL_UNUSABLE

    @property
    def unknown(self) -> int:
        return sum(error.outcome is Outcome.UNKNOWN for error in self.failures)

    @property
    def accepted(self) -> int:
        """How many were done, but are not (yet) what was asked for."""
        return sum(error.outcome is Outcome.DONE for error in self.failures)

    def do(self, resource_id: str) -> None:
        """Work on one id and show its line, or keep its failure."""
        session = self._session
        try:
            with session.signals.held():
                view = self._work(resource_id)
                done = f"the {self._verb} of {resource_id} was accepted" if self._verb else None
                with session.accounting_for(done):
                    session.console.show_line(view)
                self.shown += 1
        except EscrowctlError as error:
            if error.code in _NOTHING_MORE_CAN_BE_SHOWN:
                raise
            if self._verb:
                error.effect = effect_on(resource_id, error.effect)
            self.failures.append(error)
            session.console.error(error, session.invocation)
            if session.options.json or session.options.raw:
                document = error_document(error, session.invocation)
                outcome = error.outcome.value if error.outcome else "failed"
                session.console.document({"id": resource_id, "outcome": outcome, **document})
            session.signals.resume()

    def describe(self, total: int) -> str:
        """Return counts that add up to the total."""
        left = total - self.shown - len(self.failures)
        if self._verb is None:
            return f"{self.shown} read, {len(self.failures)} failed" + (f", {left} not read" if left else "")
        failed = len(self.failures) - self.unknown - self.accepted
        accepted = f"{self.accepted} accepted but not confirmed, " if self.accepted else ""
        return f"{self.shown} done, {accepted}{failed} failed, {self.unknown} unknown, {left} not attempted"
