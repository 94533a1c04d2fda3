"""Send a write: store its intent, send its bytes once, store its outcome. Nothing else sends writes.

    journal.begin   the intent is on disk, or nothing is sent
    exchange        the only step that waits; signals may end it
    judge_write     by evidence and status, never by the type of an exception
    journal.settle  the outcome is on disk before anything reports it

If the process dies between the first and the last step, the entry reads as unknown. If `client.retry` allows
another attempt, it takes the same four steps under the same key.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from escrowctl.client.http import SUCCESS_STATUSES, Answer, Evidence, Exchange, Fault, Request, make_headers
from escrowctl.client.reader import Reader
from escrowctl.client.retry import may_write_again
from escrowctl.config.service import MAX_REPLY_BYTES
from escrowctl.contract.json import Document, encode, read_reply
from escrowctl.contract.operations import CREATE_TRANSACTION, Operation
from escrowctl.contract.record import Record, make_record
from escrowctl.contract.redaction import find_signing_secret, hide_private_values, may_hold_secret, redact
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Reason, Stopped, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import NO_CAPS, AttemptRequest, Entry, Intent, OperatorDecision, Settlement, State
from escrowctl.runtime import timestamp
from escrowctl.writes.outcome import Judgement, find_other_write, judge_write, make_sent_request
from escrowctl.writes.requests import (
    WriteRequest,
    account_of,
    is_unopened,
    make_intent,
    require_opened,
    require_writable,
)
from escrowctl.writes.result import WriteResult, describe_differences, not_recorded

_REPORT_AFTER_SECONDS = 1.0
_POLL_SECONDS = 0.05
_RECENT_AGE = timedelta(minutes=15)


class Writer:
    """Sends writes to the service of `reader`, over the same connection, and records them in `journal`.

    `report_defect` is called with an internal error. The write still gets an outcome. `note_judged` is called with
    an entry as judged by its exchange, before that outcome is recorded.
    """

    def __init__(
        self,
        reader: Reader,
        journal: Journal,
        *,
        report_defect: Callable[[BaseException], None],
        note_judged: Callable[[Entry, Exchange], None] = lambda _entry, _exchange: None,
    ) -> None:
        self.reader = reader
        self.service, self.signals, self.runtime = reader.service, reader.signals, reader.runtime
        self._report_defect = report_defect
        self._note_judged = note_judged
        self.journal = journal
        self.entry: Entry | None = None
        """The entry of the last write, as it was last recorded; None: no write has begun."""

    def check(self, request: WriteRequest) -> None:
        """Raise EscrowctlError `READ_ONLY` for a read-only profile, `BAD_VALUE` if the request has the API key."""
        require_writable(self.service)
        self.service.refuse_key(*request.typed_texts)

    def find_known(self, request: WriteRequest, *, rehearses: bool = False) -> WriteResult | None:
        """Return the stored result if the request repeats an earlier one under its idempotency key; else None.

        Raises EscrowctlError: `READ_ONLY` for a read-only profile unless `rehearses` (dry run), `BAD_VALUE` if the
        request has the API key, or a guard's code: `KEY_REUSED`, `BUSY`, `ALREADY_DONE`, `EARLIER_UNKNOWN`,
        `CONFLICT`, `REFERENCE_REUSED`.
        """
        if not rehearses:
            require_writable(self.service)
        self.service.refuse_key(*request.typed_texts)
        intent = self._make_intent(request)
        sent = self.journal.find_repeated(intent, resend_throttled=self.service.may_repeat_throttled)
        if sent is not None:
            return self._replay(sent, request)
        require_opened(self.service, request.operation, self.journal)
        return None

    def find_recent_create(self, request: WriteRequest) -> Entry | None:
        """Return the newest create that is identical, done and at most 15 minutes old.

        None if the operator chose the idempotency key: the key identifies the escrow. Two creates that both have a
        reference are not identical. If only one has it, they may be: the operator may have forgotten it.
        """
        if request.options.idempotency_key is not None or request.options.already_sent:
            return None
        since = timestamp(self.runtime.now() - _RECENT_AGE)
        return self.journal.find_recent_done(self._make_intent(request), since=since)

    def rehearse(self, request: WriteRequest) -> WriteResult | None:
        """Return the stored result that a request would repeat, or None. For dry runs, also if read-only.

        Raises EscrowctlError if the request would be refused before it is sent. Caps are not checked if the amount
        must be read from a record.
        """
        known = self.find_known(request, rehearses=True)
        if known is None and request.is_capped and (request.money is not None or request.resource_id is None):
            self.journal.check_caps([self._make_intent(request)], self.service.caps)
        return known

    @contextmanager
    def hold_locks(self, request: WriteRequest) -> Iterator[bool]:
        """Hold the locks of a request across processes; yields whether it had to wait for another process.

        After a second, the wait is reported if standard error is a terminal. Signals may end the wait. Raises
        `ErrorCode.BUSY` after twice a write's time-out.
        """
        runtime, journal, timeout = self.runtime, self.journal, 2 * self.service.write_timeout
        names = {f"{name}\n{lock}" for lock in request.locks for name in self.service.journal_names}
        start, waited = runtime.monotonic(), False
        while not journal.hold(runtime.run_id, *names):
            waited, seconds = True, runtime.monotonic() - start
            if seconds > timeout:
                message = f"escrowctl waited {timeout:g} s, but another process is still working on the same write."
                raise not_sent(ErrorCode.BUSY, message, effect=Effect.NOTHING_SENT_NOW, reason=Reason.BUSY)
            if runtime.stderr.isatty() and seconds >= _REPORT_AFTER_SECONDS:
                verb = request.operation.verb
                message = f"another process is working on the same {verb}; escrowctl waits up to {timeout:g} s"
                self.reader.retry.report(message)
            with self.signals.let_through():
                runtime.sleep(_POLL_SECONDS)
        try:
            yield waited
        finally:
            journal.locks.free(*names)

    def perform(
        self,
        request: WriteRequest,
        *,
        entry_to_repeat: Entry | None = None,
        decision: OperatorDecision | None = None,
        check_again: Callable[[Entry], Entry | None] = lambda _: None,
    ) -> WriteResult:
        """Send a request, or with `already_sent` only record it, and return its result. Call inside `signals.held()`.

        `entry_to_repeat` is sent once more, perhaps by an operator's `decision`. If an earlier attempt may have been
        applied, only a reply that proves a new attempt settles the write. `check_again` is called before each retry:
        the write is not retried if it returns the entry as settled, or raises EscrowctlError.

        Raises EscrowctlError if a guard or the profile refuses the request, or `JOURNAL_UNUSABLE` if its intent
        could not be recorded: nothing was sent then. Raises `OUTCOME_UNKNOWN` if the outcome could not be recorded,
        and `Stopped` for a signal while the write cannot have been applied.
        """
        self.check(request)
        entry = self._begin(request, entry_to_repeat, decision)
        if entry.state is not State.IN_FLIGHT:
            return self._replay(entry, request)
        may_be_applied = decision is not None or (entry_to_repeat is not None and entry_to_repeat.is_open)
        service = self.service
        attempts = self.reader.retry.make_attempts(service.write_timeout)
        while True:
            attempts.start()
            exchange = self._send(entry, request, may_be_applied=may_be_applied)
            result = self._settle(entry, request, exchange, may_be_applied=may_be_applied)
            may_be_applied = result.sent_entry.state is State.UNKNOWN
            try:
                allowed = may_write_again(
                    exchange, may_repeat_throttled=service.may_repeat_throttled, deduplicated=service.deduplicates
                )
                if not attempts.wait_if_repeatable(exchange, allowed=allowed):
                    return result
                if (settled := check_again(result.sent_entry)) is not None:
                    return result._replace(entry=settled)
                entry = self._begin(request, result.sent_entry)
            except (Exception, Stopped) as error:
                was_refused = result.sent_entry.state is State.REFUSED and isinstance(error, EscrowctlError)
                if not (may_be_applied or was_refused):
                    raise
                # The outcome matters more than the reason why it was not retried.
                if isinstance(error, Stopped):
                    self.signals.remember(error)
                elif not isinstance(error, EscrowctlError):
                    self._report_defect(error)
                return result

    def settle_later(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record the outcome of a write as a read shows it, and return its entry. See `Journal.settle_later`."""
        self.entry = self.journal.settle_later(entry, settlement)
        return self.entry

    def preview(self, request: WriteRequest, *, placeholder: str) -> Request:
        """Return the HTTP request as it would be sent, with `placeholder` in place of generated ids."""
        self.service.refuse_key(*request.typed_texts)
        url = self.service.make_url(request.operation.fill_path(request.resource_id))
        body = request.body.encode() if request.body is not None else None
        headers = make_headers(
            request_id=placeholder,
            has_body=body is not None,
            idempotency_key=request.options.idempotency_key or placeholder,
        )
        return Request(request.operation.method, url, headers, body)

    def _begin(self, request: WriteRequest, again: Entry | None, decision: OperatorDecision | None = None) -> Entry:
        service, runtime, already_sent = self.service, self.runtime, request.options.already_sent
        if again is not None:
            intent = again.intent._replace(already_sent=False)
        else:
            if not already_sent and is_unopened(service, request.operation, self.journal):
                # It refuses what is not known: that is not sent again.
                self.find_known(request)
            intent = self._make_intent(request)
        intent = intent._replace(
            account=account_of(service), operator=runtime.operator, host=runtime.host, process=os.getpid()
        )
        caps = service.caps if request.is_capped and not already_sent else NO_CAPS
        attempt = AttemptRequest(intent, runtime.new_request_id(), caps, service.may_repeat_throttled, again, decision)
        self.entry = self.journal.begin(attempt)
        return self.entry

    def _make_intent(self, request: WriteRequest) -> Intent:
        return make_intent(self.service, request, request.options.idempotency_key or self.runtime.new_uuid())

    def _send(self, entry: Entry, request: WriteRequest, *, may_be_applied: bool) -> Exchange:
        """Send an entry's current attempt and return the exchange. Raises what ended it, if it was surely not sent.

        If the reply is to a different write, the exchange has the fault `Fault.MISDIRECTED` and no answer.
        """
        evidence, intent, service = Evidence(self.journal.locks.may_send), entry.intent, self.service
        try:
            # The request's own body: the stored one has hashes in place of secrets.
            body = request.body.encode() if request.body is not None else None
            headers = make_headers(
                request_id=entry.request_id, has_body=body is not None, idempotency_key=intent.idempotency_key
            )
            outgoing = Request(intent.method, intent.url, headers, body, request.operation.is_confidential)
            with self.signals.let_through():
                exchange = self.reader.connection.exchange(
                    outgoing, evidence=evidence, seconds=service.write_timeout, limit=MAX_REPLY_BYTES
                )
            answer = exchange.answer
            if answer is not None and (other := find_other_write(answer, entry, request.document, service)):
                detail = f"status {answer.status}, {other}"
                return exchange._replace(answer=None, fault=Fault.MISDIRECTED, detail=detail)
            return exchange
        except BaseException as error:
            # A signal or an internal error: only the evidence that a byte left decides the outcome.
            if not (evidence.sent or may_be_applied):
                detail = "escrowctl stopped before it sent the first byte"
                self.entry = self.journal.settle(entry, Settlement(Outcome.NOT_SENT, detail))
                raise
            if isinstance(error, Stopped):
                # The outcome is reported first, then the stop.
                self.signals.remember(error)
                return Exchange(evidence.sent, fault=Fault.INTERRUPTED)
            self._report_defect(error)
            return Exchange(evidence.sent, fault=Fault.DEFECT, detail=type(error).__name__)

    def _settle(self, entry: Entry, request: WriteRequest, exchange: Exchange, *, may_be_applied: bool) -> WriteResult:
        """Judge an attempt, record its outcome (unknown if judging fails), and return the result."""
        answer = exchange.answer
        result = self._judge(entry, request, exchange, may_be_applied=may_be_applied)
        try:
            if answer is not None and answer.status in SUCCESS_STATUSES and request.operation.is_confidential:
                self._save_secret(entry, request.operation, answer, result.record)
        except Exception as error:  # noqa: BLE001 - its bytes have left
            self._report_defect(error)
            result = _make_unprocessed_result(entry, exchange, error)
        self._note_judged(result.sent_entry, exchange)
        settlement = result.sent_entry.settlement
        try:
            self.entry = self.journal.settle(entry, settlement)
            return result._replace(entry=self.entry)
        except EscrowctlError as error:
            if error.code is ErrorCode.OUTCOME_UNKNOWN:
                raise
            raise not_recorded(entry, settlement, error) from error

    def _save_secret(self, entry: Entry, operation: Operation, answer: Answer, record: Record | None) -> None:
        """Store a 2xx reply that may have a signing secret, even if unreadable: the service sends a secret once."""
        if record is None:
            if operation.creates_record and answer.body:
                self.journal.secrets.store(entry, answer.body.decode("utf-8", errors="replace"), resource_id=None)
            return
        harmless = self.service.webhooks.field_names
        if find_signing_secret(record.document) or (
            operation.creates_record and may_hold_secret(record.document, harmless=harmless)
        ):
            self.journal.secrets.store(entry, record.document, resource_id=record.known.id)

    def _replay(self, entry: Entry, request: WriteRequest) -> WriteResult:
        """Return the stored result of an entry, with its stored reply."""
        reply = read_reply((entry.settlement.reply or "").encode())
        record = None
        if isinstance(reply, Document):
            record = make_record(reply.value, pointers=self.service.pointers, noun=request.operation.noun)
        return WriteResult(entry, record, replayed=True)

    def _judge(self, entry: Entry, request: WriteRequest, exchange: Exchange, *, may_be_applied: bool) -> WriteResult:
        """Return the result of an attempt, to be recorded. Its outcome is unknown if judging fails.

        `may_be_applied`: an earlier attempt may have been applied. Then only a reply that proves the new attempt
        settles the write.
        """
        try:
            # An echo of a text that may be a secret proves nothing: it is compared with the hash in the journal.
            body = None if request.operation.is_confidential else request.document
            judged = judge_write(request.operation, exchange, sent=make_sent_request(self.service, entry, body))
            if may_be_applied:
                judged = judged.with_earlier_unknown()
            settled = entry._replace(settlement=self._make_settlement(request, judged, exchange))
            return WriteResult(settled, judged.record, judged.code, answer=exchange.answer)
        except Exception as error:  # noqa: BLE001 - after any failure here, its bytes may have left
            self._report_defect(error)
            return _make_unprocessed_result(entry, exchange, error)

    def _make_settlement(self, request: WriteRequest, judged: Judgement, exchange: Exchange) -> Settlement:
        record, result_id, remark = judged.record, None, None
        if judged.outcome is Outcome.DONE:
            result_id = judged.result_id or (record.known.id if record else None)
            if request.operation.name == CREATE_TRANSACTION.name:
                remark = describe_differences(self.service, record, request.money)
        reply = None
        if record and request.operation.is_confidential:
            reply = encode(redact(record.document, harmless=self.service.webhooks.field_names))
        elif record:
            reply = encode(hide_private_values(record.document))
        is_timeout = exchange.fault is Fault.TIMEOUT
        return Settlement(
            outcome=judged.outcome,
            detail=f"no reply came within {self.service.write_timeout:g} s" if is_timeout else judged.detail,
            http_status=exchange.answer.status if exchange.answer else None,
            result_id=result_id,
            reply=reply,
            may_repeat=judged.may_repeat,
            remark=remark,
        )


def _make_unprocessed_result(entry: Entry, exchange: Exchange, error: Exception) -> WriteResult:
    """Return the result of an attempt whose reply could not be processed. Its outcome is unknown."""
    detail = f"escrowctl could not process the reply ({type(error).__name__})"
    settlement = Settlement(Outcome.UNKNOWN, detail, exchange.answer.status if exchange.answer else None)
    return WriteResult(entry._replace(settlement=settlement), answer=exchange.answer)
