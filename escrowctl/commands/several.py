"""One command over several ids: a line each, and one exit code for all."""

from collections.abc import Callable

from escrowctl.commands.advice import advise
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, OutputClosedError, Stopped, effect_on
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
        """Whether the last failure, an unusable journal, rules out work on the other ids."""
        return bool(self.failures) and self.failures[-1].code is ErrorCode.JOURNAL_UNUSABLE

    @property
    def unknown(self) -> int:
        return sum(error.outcome is Outcome.UNKNOWN for error in self.failures)

    @property
    def accepted(self) -> int:
        """The number of writes that were done, but are not (yet) as requested."""
        return sum(error.outcome is Outcome.DONE for error in self.failures)

    def do(self, resource_id: str) -> None:
        """Work on one id. Show its line, or store its failure."""
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
            self.failures.append(advise(error, session))
            session.console.error(error, session.invocation)
            if session.options.json or session.options.raw:
                document = error_document(error, session.invocation)
                outcome = error.outcome.value if error.outcome else "failed"
                session.console.document({"id": resource_id, "outcome": outcome, **document})
            session.signals.resume()

    def describe(self, total: int) -> str:
        """Return the counts by outcome as text. They add up to the total."""
        left = total - self.shown - len(self.failures)
        if self._verb is None:
            return f"{self.shown} read, {len(self.failures)} failed" + (f", {left} not read" if left else "")
        failed = len(self.failures) - self.unknown - self.accepted
        accepted = f"{self.accepted} accepted but not confirmed, " if self.accepted else ""
        return f"{self.shown} done, {accepted}{failed} failed, {self.unknown} unknown, {left} not attempted"
