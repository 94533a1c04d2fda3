"""One command over several ids: a line each, and one exit code for all."""

from collections.abc import Callable

from escrowctl.contract.number import JsonValue
from escrowctl.errors import ErrorCode, EscrowctlError, Sending
from escrowctl.output.trouble import error_document
from escrowctl.output.view import View
from escrowctl.session import Session


def run_several(
    session: Session, ids: list[str], work: Callable[[str], View], *, failed: str, done: str | None = None
) -> None:
    """Do `work` for each id in turn and show each line as it comes.

    Under `--json` each line is an object with its `outcome`; elsewhere a failure goes to stderr and
    the rows are lines. Goes on after a failure. Raises EscrowctlError at the end: 12 where any is
    unknown, else 15 where any failed; `failed` completes "2 of 5 ...". `done` completes "ID ..." and
    says that the work was a write, whose line must not get lost.
    """
    failures: list[EscrowctlError] = []
    for resource_id in ids:
        try:
            view = work(resource_id)
        except EscrowctlError as error:
            failures.append(error)
            session.console.error(error)
            if session.options.json:
                session.console.document(_failed_line(resource_id, error))
            session.signals.resume()
            continue
        with session.accounting_for(f"{resource_id} {done}" if done else None):
            _show_line(session, view)
    _raise_worst(failures, total=len(ids), failed=failed)


def _show_line(session: Session, view: View) -> None:
    if session.options.json or session.options.quiet:
        session.console.show(view)
    else:
        session.console.show_row(view)


def _failed_line(resource_id: str, error: EscrowctlError) -> JsonValue:
    outcome = error.sending.value if error.sending else "failed"
    document = error_document(error)
    assert isinstance(document, dict)
    return {"id": resource_id, "outcome": outcome, **document}


def _raise_worst(failures: list[EscrowctlError], *, total: int, failed: str) -> None:
    if not failures:
        return
    unknown = [error for error in failures if error.sending is Sending.UNKNOWN]
    raise EscrowctlError(
        ErrorCode.SOME_UNKNOWN if unknown else ErrorCode.SOME_FAILED,
        f"{len(failures)} of {total} {failed}, {len(unknown)} unknown.",
        sending=Sending.UNKNOWN if unknown else None,
    )
