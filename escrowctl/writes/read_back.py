"""Read a record back after a write to it: *accepted* is not yet *done*.

Only the profile knows which statuses prove a release: the service does not document them (contract/INTERFACE.md
section 3). The effect of an update is not documented either: only a read shows if it released the escrow.
"""

from collections.abc import Mapping
from contextlib import suppress

from escrowctl.client.polling import PollTimer
from escrowctl.client.problem import describe_refusal
from escrowctl.contract.record import KnownFields, Record, describe_record
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, Reason, Stopped
from escrowctl.journal.guards import entry_taken_over
from escrowctl.journal.model import Entry, Settlement, State, confirmed_by_read
from escrowctl.writes.inspection import RecordOptions, require_expected_money
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteRequest
from escrowctl.writes.result import WriteResult, not_recorded, write_failure
from escrowctl.writes.writer import Writer


class ReadBack:
    """Concludes a write on one record by reading that record afterwards."""

    def __init__(self, request: WriteRequest, options: RecordOptions, writer: Writer) -> None:
        self.resource_id = request.resource_id or ""
        self._kind, self._verb = kind_of(request.operation.name), request.operation.verb
        self._once_only = request.operation.is_once_only
        self._options = options
        self._writer, self._service, self._signals = writer, writer.service, writer.signals

    def conclude(self, result: WriteResult) -> WriteResult:
        """Return the result with the record as read now.

        Raises EscrowctlError if the write is not done, or if the record should confirm the write and does not.
        """
        if self._once_only:
            return self._conclude_once_only(result)
        if result.sent_entry.state is not State.DONE:
            raise write_failure(self._service, result)
        # The record is read if it may show a release, or if the reply has none.
        if result.record is not None and (result.replayed or not self._service.released):
            return result
        after, why = self._read_record()
        return result._replace(after=after, why_unread=why)

    def conclude_skipped(self, error: EscrowctlError) -> WriteResult:
        """Return the result of a write that `error` refused as done already, with the record as read now.

        The result is `verified` only if the status proves the write. Raises `error` if the record cannot be read,
        or shows that the write failed or is not done; `ErrorCode.EXPECTATION_FAILED` if the record has another
        amount or currency than expected; `WAIT_EXPIRED` if the write is still in progress at the end of the wait.
        """
        after, why = self._read_record()
        status = after.known.status if after else None
        if self._options.wait is not None and self._kind.is_pending(status, self._service):
            after = self._poll(after, f"the {self._verb} of {self.resource_id} was accepted earlier", error.facts)
        if after is None:
            error.message = f"{error.message} The escrow could not be read now: {why}"
            raise error
        require_expected_money(self.resource_id, after.known, self._options)
        verified, status = self._is_verified(after), after.known.status
        is_pending = self._kind.is_pending(status, self._service)
        if self._kind.is_failed(status, self._service) or (verified is False and not is_pending):
            raise error
        return WriteResult(None, before=after.known, after=after, verified=verified)

    def _conclude_once_only(self, result: WriteResult) -> WriteResult:
        state = result.sent_entry.state
        # After a refusal, a read may show more than the reply: a proxy may send a request twice.
        may_differ = state is State.UNKNOWN or (state is State.REFUSED and result.code is not ErrorCode.RATE_LIMITED)
        if state is not State.DONE and (result.answer is None or not may_differ):
            raise write_failure(self._service, result)
        after, _ = self._read_record()
        if result.replayed:
            require_expected_money(self.resource_id, _known_fields_of(after), self._options)
        if result.sent_entry.state is State.DONE and self._options.wait is not None:
            accepted = f"the service accepted the {self._verb} of {self.resource_id}"
            accepted = f"{accepted} ({result.sent_entry.settlement.http_status})"
            after = self._poll(after, accepted, result.sent_entry.facts, before=result.status_before)
        result = result._replace(after=after, verified=self._is_verified(after))
        if result.verified is True and not result.sent_entry.settlement.verified:
            result = result._replace(entry=self._settle_as_read(result))
        if result.sent_entry.state is not State.DONE:
            raise self._not_done(result)
        replied = result.record.known.status if result.record else None
        is_failed = any(self._kind.is_failed(status, self._service) for status in (replied, result.status_after))
        is_unknown = not self._kind.proving_statuses(self._service) and not is_failed
        is_open = is_unknown or self._kind.is_pending(result.status_after, self._service)
        # A stop ends the read or the wait early: the accepted write is reported first, then the stop.
        if result.verified is True or is_open or self._signals.pending is not None:
            return result
        status = f"the status is {result.status_after}" if result.status_after else "the escrow cannot be read now"
        settlement = result.sent_entry.settlement._replace(remark=f"not confirmed: {status}")
        # If the remark cannot be recorded, nothing is lost.
        with suppress(EscrowctlError):
            self._writer.settle_later(result.sent_entry, settlement)
        raise self._not_confirmed(result)

    def _not_confirmed(self, result: WriteResult) -> EscrowctlError:
        """Return the error of a write that the service accepted, if the record does not show the write."""
        entry, status = result.sent_entry, result.status_after
        reads = f"the status is {'still ' * (status == result.status_before)}{status}"
        if status is None:
            reads = result.why_no_status
        return EscrowctlError(
            self._kind.unconfirmed_code,
            f"the service accepted the {self._verb} of {self.resource_id} ({entry.settlement.http_status}), but "
            f"{reads}. Do not {self._verb} it again.",
            outcome=Outcome.DONE,
            facts=entry.facts | {"status_before": result.status_before, "status_after": status},
            reason=Reason.NOT_CONFIRMED,
        )

    def _not_done(self, result: WriteResult) -> EscrowctlError:
        """Return the error of a write that is not done. First correct its outcome by the record as read.

        A final 409 becomes refused if the status is unchanged. A refusal becomes unknown if the status has changed.
        """
        entry, after = result.sent_entry, _known_fields_of(result.after)
        is_known = result.status_after is not None and result.status_before is not None
        is_unchanged = is_known and result.status_before == result.status_after
        is_conflict, answer = result.code is ErrorCode.CONFLICT, result.answer
        # If the service deduplicates or says when to retry, an earlier copy of the request may still be in progress.
        is_final = not self._service.deduplicates and answer and answer.find_header("Retry-After") is None
        if answer and is_conflict and is_final and is_unchanged and entry.state is State.UNKNOWN:
            detail = f"{describe_refusal(answer)}; the service then reported no change ({describe_record(after)})"
            result = result._replace(entry=self._correct_outcome(entry, Outcome.REFUSED, detail))
        elif entry.state is State.REFUSED and is_known and not is_unchanged:
            # The record changed: a proxy may have sent the request twice, and only the second was refused.
            replied, now = f"the service replied {entry.settlement.detail}", describe_record(after)
            before = describe_record(result.before)
            detail = f"{replied}, but now reports {self.resource_id} as {now} (before: {before})"
            result = result._replace(entry=self._correct_outcome(entry, Outcome.UNKNOWN, detail), code=None)
        failure = write_failure(self._service, result)
        if is_conflict and after is not None and failure.outcome is Outcome.REFUSED:
            failure.facts = {**failure.facts, "status_after": describe_record(after)}
            failure.reason = Reason.OTHER_STATUS
        return failure

    def _correct_outcome(self, entry: Entry, outcome: Outcome, detail: str) -> Entry:
        settlement = entry.settlement._replace(outcome=outcome, detail=detail)
        try:
            return self._writer.settle_later(entry, settlement)
        except EscrowctlError as error:
            raise _unrecorded_read(entry, settlement, error) from error

    def _settle_as_read(self, result: WriteResult) -> Entry:
        entry = result.sent_entry
        detail = f"{entry.settlement.detail}; the service then reported {result.status_after}"
        try:
            return self._writer.settle_later(entry, confirmed_by_read(entry, detail))
        except EscrowctlError as error:
            if entry.state is State.DONE and error.code is not ErrorCode.BUSY:
                # The journal has it as done already.
                return entry
            settlement = entry.settlement._replace(outcome=Outcome.DONE, detail=detail)
            raise _unrecorded_read(entry, settlement, error) from error

    def _poll(
        self, after: Record | None, accepted: str, facts: Mapping[str, object], *, before: str | None = None
    ) -> Record | None:
        """Read the record until its status proves that the write was done or failed; return it as last read.

        A failed status that equals `before` is from before the write. Raises `ErrorCode.WAIT_EXPIRED`; its message
        begins with the clause `accepted`.
        """
        seconds = self._options.wait or 0.0
        pace = PollTimer(self._writer.runtime, self._signals, seconds)
        while self._is_verified(after) is not True:
            status = after.known.status if after else None
            if self._kind.is_failed(status, self._service) and status != before:
                return after
            try:
                is_over = not pace.wait_for_next_read()
            except Stopped as stopped:
                # As in `_read_record`: the accepted write is reported first.
                self._signals.remember(stopped)
                return after
            if is_over:
                raise EscrowctlError(
                    ErrorCode.WAIT_EXPIRED,
                    f"{accepted}, but after {seconds:g} s no read confirms this: the status is {status or 'unknown'}. "
                    f"Do not {self._verb} it again.",
                    outcome=Outcome.DONE,
                    facts={**facts, "id": self.resource_id},
                    reason=Reason.WAIT_OVER,
                )
            after, _ = self._read_record()
        return after

    def _read_record(self) -> tuple[Record | None, str | None]:
        """Return the record as read now and None, or None and the reason why the record cannot be read."""
        try:
            return self._writer.reader.read_escrow(self.resource_id), None
        except EscrowctlError as error:
            return None, error.message
        except Stopped as stopped:
            # The write's outcome is reported first, then the stop.
            self._signals.remember(stopped)
            return None, "escrowctl was interrupted"

    def _is_verified(self, after: Record | None) -> bool | None:
        """Return whether a record proves the write; None without a record, or if no proving status is known."""
        if after is None or not self._kind.proving_statuses(self._service):
            return None
        return self._kind.is_proven_by(after.known.status, self._service)


def _unrecorded_read(entry: Entry, settlement: Settlement, error: EscrowctlError) -> EscrowctlError:
    """Return the error of a sent write if the journal could not record its settlement after the read."""
    if error.code is ErrorCode.BUSY:
        return entry_taken_over(entry, settlement)
    return not_recorded(entry, settlement, error)


def _known_fields_of(record: Record | None) -> KnownFields | None:
    return record.known if record else None
