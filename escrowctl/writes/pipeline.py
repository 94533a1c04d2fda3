"""One pipeline for every kind of write: check, confirm, lock, read again, send, settle, read back.

`writes.kinds` says which steps a kind takes, `writes.writer` does begin, send, judge and settle.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.model import Entry, State, confirmed_by_read, parse_entry_name
from escrowctl.writes.create import conclude_create, settle_accepted
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteRequest
from escrowctl.writes.result import WriteResult, recorded_error, write_failure
from escrowctl.writes.writer import Writer

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm, RecordOptions
    from escrowctl.writes.read_back import ReadBack

MakeRequest = Callable[[KnownFields | None], WriteRequest]
"""Returns the request of a write to a record, from that record as read (None: not read)."""


class Pipeline:
    """Carries out writes at the service of a writer; call `run` and `run_on_record` inside `signals.held()`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._service = writer.service

    def run(
        self, request: WriteRequest, confirm: Callable[[], None] = lambda: None, *, again: Entry | None = None
    ) -> WriteResult:
        """Carry out a write that changes no record that exists, and return its result.

        `confirm` is called when no identical write is in progress. `again`: see `run_again`. Raises EscrowctlError:
        `OUTCOME_UNKNOWN` if the outcome is unknown, now or from an earlier command; `NO_CONNECTION` if nothing was
        sent; else the code of the refusal.
        """
        kind = kind_of(request.operation.name)
        # Identical requests wait for each other: the second must see the outcome of the first.
        with self._writer.hold_locks(request):
            confirm()
            result = self._writer.perform(request, entry_to_repeat=again)
            if request.options.already_sent and result.sent_entry.state is State.UNKNOWN:
                raise recorded_error(result.sent_entry, self._writer.journal.place.location)
            if kind.needs_id and result.sent_entry.state is State.UNKNOWN and not result.replayed:
                result = settle_accepted(result, self._writer)
        if request.operation.creates_record:
            return conclude_create(result, self._service)
        if result.sent_entry.state is not State.DONE:
            raise write_failure(self._service, result)
        return result

    def run_on_record(self, make_request: MakeRequest, confirm: "Confirm", options: "RecordOptions") -> WriteResult:
        """Carry out a write on a record and return its result. The record is read before and after each attempt.

        With `already_sent`, nothing is read or sent. Raises EscrowctlError: `CONFIRMATION_NEEDED` or `DECLINED` if the
        write is not confirmed, `EXPECTATION_FAILED` if the record is not as expected or changes before the write,
        `ALREADY_DONE`, `OUTCOME_UNKNOWN` or `EARLIER_UNKNOWN`; else the code of the refusal.
        """
        # Imported only here, because a create does not need it.
        from escrowctl.writes.inspection import require_unchanged  # noqa: PLC0415

        request = make_request(None)
        if request.options.already_sent:
            return self.run(request)
        read_back = self._make_read_back(request, options)
        try:
            # The journal needs no network. It is searched again under the lock, for the id that the service echoes.
            known = self._find_stored_result(request)
            if known is not None:
                return read_back.conclude(known)
            before = self._inspect_target(request, options)
            asked = confirm(read_back.resource_id, before)
            request = make_request(before)
            with self._writer.hold_locks(request) as waited:
                if (known := self._writer.find_known(request)) is not None:
                    return read_back.conclude(known)
                if asked or waited:
                    require_unchanged(read_back.resource_id, before, self._inspect_target(request, options))
                result = self._writer.perform(request, check_again=partial(self._check_again, request, options, before))
                return read_back.conclude(result._replace(before=before))
        except EscrowctlError as error:
            if not options.skip_done or error.code is not ErrorCode.ALREADY_DONE:
                raise
            skipped, name = read_back.conclude_skipped(error), error.facts.get("entry")
            if skipped.verified and isinstance(name, str):
                earlier = self._writer.journal.find(parse_entry_name(name))
                # The read confirms the earlier write that the error names.
                if earlier is not None and not earlier.settlement.verified:
                    settlement = confirmed_by_read(earlier, f"the service reported {skipped.status_after}")
                    self._writer.journal.settle_later(earlier, settlement)
            return skipped

    def run_again(self, entry: Entry, request: WriteRequest, options: "RecordOptions") -> WriteResult:
        """Send the write of an entry again under its idempotency key, and return its result.

        It was not applied, or it is unknown and the service deduplicates. If it changes a record, the record is read
        first: if that proves an unknown write, nothing is sent. Raises EscrowctlError as `run_on_record` does.
        """
        if request.resource_id is None:
            return self.run(request, again=entry)
        read_back = self._make_read_back(request, options)
        before = self._inspect_target(request, options, may_be_done=entry.is_open)
        if (settled := self._settle_if_proven(entry, before)) is not None:
            return WriteResult(settled, before=before, verified=True)
        with self._writer.hold_locks(request) as waited:
            check_again = partial(self._check_again, request, options, before)
            if waited and (settled := check_again(entry)) is not None:
                return WriteResult(settled, before=before, verified=True)
            result = self._writer.perform(request, entry_to_repeat=entry, check_again=check_again)
            return read_back.conclude(result._replace(before=before))

    def read_back(self, request: WriteRequest, result: WriteResult) -> WriteResult:
        """Return the result with the record as read now. Raises EscrowctlError if the write is not done."""
        from escrowctl.writes.inspection import RecordOptions  # noqa: PLC0415 - as above

        return self._make_read_back(request, RecordOptions()).conclude(result)

    def _make_read_back(self, request: WriteRequest, options: "RecordOptions") -> "ReadBack":
        from escrowctl.writes.read_back import ReadBack  # noqa: PLC0415 - as above

        return ReadBack(request, options, self._writer)

    def inspect(self, request: WriteRequest, options: "RecordOptions") -> KnownFields | None:
        """Return the record that a write will change, as read now. Sends no write.

        Raises EscrowctlError if `run_on_record` would refuse the write before it asks for confirmation.
        """
        self._find_stored_result(request)
        return self._inspect_target(request, options)

    def _find_stored_result(self, request: WriteRequest) -> WriteResult | None:
        """Return the stored result that a request would repeat; None: there is none, or it is still in progress."""
        try:
            return self._writer.find_known(request)
        except EscrowctlError as error:
            if error.code is not ErrorCode.BUSY:
                raise
            return None

    def _check_again(
        self, request: WriteRequest, options: "RecordOptions", before: KnownFields | None, entry: Entry
    ) -> Entry | None:
        """Read the record before a retry. Return the entry as settled if the record proves an unknown write.

        Raises EscrowctlError if the record is not as it was `before`, or the write may be done.
        """
        from escrowctl.writes.inspection import require_unchanged  # noqa: PLC0415 - as above

        now = self._inspect_target(request, options, may_be_done=entry.is_open)
        if (settled := self._settle_if_proven(entry, now)) is None:
            require_unchanged(request.resource_id or "", before, now)
        return settled

    def _settle_if_proven(self, entry: Entry, found: KnownFields | None) -> Entry | None:
        """Record an unknown write as done if its record, as read now, proves it. Return its entry, or None."""
        kind = kind_of(entry.intent.operation)
        if not entry.is_open or found is None or not kind.is_proven_by(found.status, self._service):
            return None
        return self._writer.settle_later(entry, confirmed_by_read(entry, f"the service reported {found.status}"))

    def _inspect_target(
        self, request: WriteRequest, options: "RecordOptions", *, may_be_done: bool = False
    ) -> KnownFields | None:
        from escrowctl.writes.inspection import inspect_target, require_as_created  # noqa: PLC0415 - as above

        found = inspect_target(self._writer.reader, self._service, request, options, may_be_done=may_be_done)
        if found is not None and request.operation.is_once_only:
            require_as_created(self._writer.journal, self._service, request.resource_id or "", found, options)
        return found
