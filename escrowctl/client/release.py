"""Releasing an escrow: read, agree, lock, read again, send once, read back.

A release cannot be undone. *Accepted* is not *released*: what the record says afterwards is a
second reading, and which words mean released only the profile knows (interface.md: not shown).
"""

from dataclasses import replace

from escrowctl.client.failures import write_failure
from escrowctl.client.inspection import Confirm, inspect, is_another, require_unchanged
from escrowctl.client.orders import Circumstances, Order, Terms, order_release
from escrowctl.client.problem import describe_refusal
from escrowctl.client.reading import Reader
from escrowctl.client.records import Released, describe, describe_money, set_pending
from escrowctl.client.writing import Writer, Written
from escrowctl.config.service import Service
from escrowctl.contract.operations import GET_TRANSACTION, Operation
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Outcome, Stopped, command, not_sent
from escrowctl.journal.guards import taken_over
from escrowctl.journal.model import Entry, State
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

_POLL_SECONDS = 2.0


class Release:
    """Releases escrows at one service, each on the same terms."""

    def __init__(
        self,
        service: Service,
        *,
        reader: Reader,
        writer: Writer,
        terms: Terms,
        circumstances: Circumstances,
        operation: Operation,
        confirm: Confirm,
        signals: Signals,
        surroundings: Surroundings,
    ) -> None:
        self._signals = signals
        self._surroundings = surroundings
        self._service = service
        self._reader = reader
        self._writer = writer
        self._terms = terms
        self._circumstances = circumstances
        self._operation = operation
        self._confirm = confirm

    def release(self, resource_id: str) -> Released:
        """Release one escrow once; call inside `signals.held()`.

        Raises EscrowctlError: 3 where consent or an expectation fails, 7 where it is done already,
        12 where its outcome is or was unknown; nothing was sent unless the error says so.
        """
        try:
            # What is known here needs no network; the echoed id is looked up again under the lock.
            sent_before = self._sent_before(resource_id)
            if sent_before is not None:
                return self._conclude(resource_id, None, sent_before)
            before = self._read(resource_id)
            self._check(resource_id, before)
            asked = self._confirm(resource_id, before)
            return self._release_alone(resource_id, before, asked=asked)
        except EscrowctlError as error:
            if self._terms.if_released and error.code is ErrorCode.ALREADY_DONE:
                return self._released_before(resource_id, error)
            raise

    def _sent_before(self, resource_id: str) -> Written | None:
        """Return the stored result of what this would repeat; what another process sends now is waited for later."""
        try:
            return self._writer.refuse_known(self._order(resource_id, None))
        except EscrowctlError as error:
            if error.code is not ErrorCode.BUSY:
                raise
            return None

    def _release_alone(self, resource_id: str, before: Located | None, *, asked: bool) -> Released:
        order = self._order(resource_id, before)
        with self._writer.alone(order) as waited:
            self._writer.refuse_known(order)
            if asked or waited:
                self._check_unchanged(resource_id, before)
            return self._conclude(resource_id, before, self._writer.perform(order))

    # Before

    def _order(self, resource_id: str, found: Located | None) -> Order:
        return order_release(resource_id, self._terms, self._circumstances, found=found, operation=self._operation)

    def _read(self, resource_id: str) -> Located | None:
        return inspect(self._reader, resource_id, unread=self._terms.unread, verb="release")

    def _check(self, resource_id: str, before: Located | None) -> None:
        if before is not None and self._service.means_released(before.status):
            raise not_sent(ErrorCode.ALREADY_DONE, f"{resource_id} is {before.status} already.")
        found = before or Located()
        amount, currency = self._terms.expected_amount, self._terms.expected_currency
        if amount is not None and (found.amount is None or found.amount != amount):
            raise _unexpected(resource_id, "amount", found.amount, amount)
        if currency is not None and found.currency != currency:
            raise _unexpected(resource_id, "currency", found.currency, currency)

    def _check_unchanged(self, resource_id: str, before: Located | None) -> None:
        now = self._read(resource_id)
        self._check(resource_id, now)
        require_unchanged(resource_id, before, now)

    # After

    def _conclude(self, resource_id: str, before: Located | None, written: Written) -> Released:
        if not _is_worth_reading(written):
            raise self._failure(written)
        after = self._read_back(resource_id)
        entry = written.entry
        if entry.state is State.DONE and self._terms.wait is not None:
            after = self._wait(resource_id, after, written)
        verified = self._verified(after)
        if verified is True and not entry.settlement.verified:
            entry = self._settle_as_read(written, after)
        if entry.state is not State.DONE:
            raise self._not_done(resource_id, before, after, written)
        released = Released(
            id=resource_id,
            http_status=entry.settlement.http_status,
            reply=written.record.document if written.record else None,
            status_before=_status(before),
            status_after=_status(after),
            verified=verified,
            money=describe_money(after or before),
            entry=entry,
            replayed=written.replayed,
        )
        is_open = not self._service.released or self._service.is_pending(released.status_after)
        # A stop cuts the reading or the wait short: that it was accepted is shown, and the stop comes after.
        if verified is True or is_open or self._signals.pending is not None:
            return released
        raise self._not_released(released)

    def _not_released(self, released: Released) -> EscrowctlError:
        """Return the error (16) of a release that was accepted, and whose record does not show it."""
        entry, status = released.entry, released.status_after
        assert entry is not None, "it was sent"
        is_same = status == released.status_before
        reads = "its record cannot be read" if status is None else f"its status is {'still ' * is_same}{status}"
        hints = [command(f"journal resolve {entry.name}", "to read it again")]
        if status is not None and released.status_before not in (None, status):
            # Which status means released is never suggested: a wrong one would report what did not happen.
            hints.append(command(set_pending(status), f'if {status} means "on its way"'))
        return EscrowctlError(
            ErrorCode.NOT_RELEASED,
            f"{released.id}: the release was accepted ({released.http_status}), but {reads}. Do not release it again.",
            hint=tuple(hints),
            outcome=Outcome.DONE,
            facts=entry.facts | {"status_before": released.status_before, "status_after": status},
        )

    def _not_done(
        self, resource_id: str, before: Located | None, after: Located | None, written: Written
    ) -> EscrowctlError:
        """Return why a release is not done that the service answered; a 409 that changed nothing is a refusal (7)."""
        is_conflict = written.code is ErrorCode.CONFLICT
        state, known = written.entry.state, _status(after) is not None and _status(before) is not None
        unchanged = known and _status(before) == _status(after)
        if is_conflict and unchanged and written.answer and state is State.UNKNOWN:
            detail = f"{describe_refusal(written.answer)}; read back unchanged, {describe(after)}"
            written = replace(written, entry=self._settle(written.entry, Outcome.REFUSED, detail))
        elif state is State.REFUSED and known and not unchanged:
            # Something was applied: a proxy may have sent it before what was refused.
            answered = f"the service answered {written.entry.settlement.detail}"
            detail = f"{answered}, but it reads as {describe(after)} now (before: {describe(before)})"
            written = replace(written, entry=self._settle(written.entry, Outcome.UNKNOWN, detail), code=None)
        failure = self._failure(written)
        if is_conflict and after is not None:
            failure.hints = (*failure.hints, Hint(f"{resource_id} reads as {describe(after)} now"))
        return failure

    def _settle(self, entry: Entry, outcome: Outcome, detail: str) -> Entry:
        return self._writer.journal.settle_later(entry, entry.settlement._replace(outcome=outcome, detail=detail))

    def _settle_as_read(self, written: Written, after: Located | None) -> Entry:
        entry = written.entry
        try:
            return self._writer.journal.settle_by_reading(
                entry, f"{entry.settlement.detail}; read back as {_status(after)}"
            )
        except EscrowctlError as error:
            if error.code is ErrorCode.BUSY:
                raise taken_over(entry, entry.settlement) from error
            # The release was sent, whatever the journal can take now: done if that is on record, else unknown.
            if entry.state is State.DONE:
                return entry
            raise self._failure(written) from None

    def _failure(self, written: Written) -> EscrowctlError:
        return write_failure(self._service, written.entry, written.code, replayed=written.replayed)

    def _wait(self, resource_id: str, after: Located | None, written: Written) -> Located | None:
        """Read until a word means released; a reading that fails is one that has not shown it yet.

        Raises EscrowctlError `wait_expired` (exit 13): the release itself was accepted.
        """
        around, seconds = self._surroundings, self._terms.wait or 0.0
        end = around.monotonic() + seconds
        while self._verified(after) is not True:
            if around.monotonic() >= end:
                raise EscrowctlError(
                    ErrorCode.WAIT_EXPIRED,
                    f"{resource_id}: the release was accepted ({written.entry.settlement.http_status}), but "
                    f"{seconds:g} s later it is {describe(after)}, not released.",
                    hint=command(f"tx get {resource_id}"),
                    outcome=Outcome.DONE,
                    facts=written.entry.facts,
                )
            try:
                with self._signals.let_through():
                    around.sleep(_POLL_SECONDS)
            except Stopped as stopped:
                # As in `_read_back`: that it was accepted is said first.
                self._signals.remember(stopped)
                return after
            after = self._read_back(resource_id)
        return after

    def _read_back(self, resource_id: str) -> Located | None:
        try:
            located = self._reader.read(GET_TRANSACTION, resource_id, decides=True).located
            # What another escrow has become says nothing of this one.
            return None if is_another(resource_id, located) else located
        except EscrowctlError:
            return None
        except Stopped as stopped:
            # The release is done; that is said first, and the stop comes after.
            self._signals.remember(stopped)
            return None

    def _verified(self, after: Located | None) -> bool | None:
        """Return whether a record reads as released; None where that cannot be told."""
        return None if after is None or not self._service.released else self._service.means_released(after.status)

    def _released_before(self, resource_id: str, error: EscrowctlError) -> Released:
        """Return that it was released before; raises `error` where a reading says otherwise, or nothing.

        Where the profile names no word for released, that it was accepted before is all that there is.
        """
        after = self._read_back(resource_id)
        if after is None or self._verified(after) is False:
            raise error
        return Released(
            resource_id, None, None, _status(after), _status(after), self._verified(after), describe_money(after), None
        )


def _is_worth_reading(written: Written) -> bool:
    """Whether a reading may show more than the answer: a refusal too may be one of a proxy's second try."""
    match written.entry.state:
        case State.DONE:
            return True
        case State.UNKNOWN:
            return written.answer is not None
        case State.REFUSED:
            return written.answer is not None and written.code is not ErrorCode.RATE_LIMITED
        case _:
            return False


def _status(located: Located | None) -> str | None:
    return located.status if located else None


def _unexpected(resource_id: str, what: str, found: object, expected: object) -> EscrowctlError:
    is_what = f"is {found}" if found is not None else "cannot be found in its record"
    return not_sent(
        ErrorCode.EXPECTATION_FAILED,
        f"the {what} of {resource_id} {is_what}, expected was {expected}.",
        facts={"expected": str(expected), "found": str(found) if found is not None else None},
    )
