"""Writes: intent durable, bytes out once, outcome durable. Nothing in escrowctl sends a write but this.

    journal.begin   the intent is on disk, or nothing happens
    wire.exchange   the one place that waits; signals may end it
    judge_write     evidence and status, never the exception's type
    journal.settle  the outcome is on disk before anybody hears of it

A process that dies between the first and the last leaves an entry that reads as unknown. Where
`client.retry` allows another attempt, it takes the same four steps under the same key.
"""

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from escrowctl.client.exchange import SUCCESS, Answer, Evidence, Exchange, Fault, Request
from escrowctl.client.headers import make_headers
from escrowctl.client.orders import Order
from escrowctl.client.outcome import Judgement, describe_sent, document_of, judge_write
from escrowctl.client.reading import make_record
from escrowctl.client.records import Record
from escrowctl.client.retry import Retry, may_write_again
from escrowctl.client.transport import Wire
from escrowctl.config.service import Service
from escrowctl.contract.body import encode
from escrowctl.contract.operations import Operation
from escrowctl.contract.redaction import find_secret, hide_values, may_hold_secret, redact
from escrowctl.contract.reply import Document, read_reply
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, Stopped, not_sent
from escrowctl.journal.accounts import account_of
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import NO_CAPS, Caps, Entry, Intent, OperatorDecision, Settlement, State
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

_REPORTED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Written:
    """What became of an order. `record` is what the service said, if it could be read.

    `replayed`: nothing was sent now, an earlier attempt's result stands. `answer`: the service sent a
    status, so that reading back may settle an unknown.
    """

    entry: Entry
    record: Record | None
    code: ErrorCode | None = None
    replayed: bool = False
    answer: Answer | None = None


class Writer:
    """Sends writes to one service, through one journal.

    They are recorded in `journal`. `note_defect` is told of a defect of ours after which a write is
    still accounted for.
    """

    def __init__(
        self,
        service: Service,
        wire: Wire,
        journal: Journal,
        *,
        retry: Retry,
        surroundings: Surroundings,
        signals: Signals,
        note_defect: Callable[[BaseException], None],
    ) -> None:
        self._service = service
        self._wire = wire
        self._retry = retry
        self._note_defect = note_defect
        self.journal = journal
        self._surroundings = surroundings
        self._signals = signals

    def perform(self, order: Order) -> Written:
        """Send an order, and return what is known of it; call inside `signals.held()`.

        Raises EscrowctlError where a guard or the profile refuses it (nothing sent), `journal_unusable`
        where no intent could be recorded (nothing sent), and `Stopped` for a signal while nothing of
        it can have been applied.
        """
        self.check(order)
        request_id = self._surroundings.new_uuid()
        begun = self.journal.begin(
            self._intent(order),
            request_id=request_id,
            caps=self._caps(order),
            resend_throttled=self._service.repeats_throttled,
        )
        return self._replayed(begun.entry, order) if begun.replayed else self._send_while_allowed(begun.entry, order)

    def perform_again(self, entry: Entry, order: Order, decision: OperatorDecision) -> Written:
        """Send an entry's order once more on an operator's word; raises as `perform` does."""
        self.check(order)
        return self._send_while_allowed(self._begin_again(entry, order, decision), order, unsettled=True)

    def _send_while_allowed(self, entry: Entry, order: Order, *, unsettled: bool = False) -> Written:
        """Make one attempt, and more where they are allowed.

        `unsettled`: an earlier attempt may have been applied; whatever the service says to a later
        one but that it is done, it stays unknown.
        """
        attempts = self._retry.attempts(self._service.write_timeout)
        while True:
            attempts.start()
            exchange = self._send(entry, order, unsettled=unsettled)
            try:
                written = self._judge(entry, order, exchange, unsettled=unsettled)
            except EscrowctlError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever fails here, its bytes may have left
                written = self._give_up(entry, exchange, error)
            unsettled = written.entry.state is State.UNKNOWN
            try:
                if not attempts.again(exchange, allowed=self._may_send_again(exchange)):
                    return written
                entry = self._begin_again(written.entry, order)
            except (Exception, Stopped) as error:
                if not unsettled:
                    raise
                # That it may have happened outranks why it was not tried again.
                if isinstance(error, Stopped):
                    self._signals.remember(error)
                elif not isinstance(error, EscrowctlError):
                    self._note_defect(error)
                return written

    def _may_send_again(self, exchange: Exchange) -> bool:
        service = self._service
        return may_write_again(exchange, refused_for_now=service.repeats_throttled, deduplicated=service.deduplicates)

    def _begin_again(self, entry: Entry, order: Order, decision: OperatorDecision | None = None) -> Entry:
        request_id = self._surroundings.new_uuid()
        account = account_of(self._service)
        return self.journal.begin_again(
            entry, account, request_id=request_id, caps=self._caps(order), decision=decision
        )

    def _judge(self, entry: Entry, order: Order, exchange: Exchange, *, unsettled: bool) -> Written:
        outcome = judge_write(order.operation, exchange, sent=describe_sent(self._service, entry))
        if unsettled:
            outcome = outcome.after_unknown()
        record = self._record(document_of(exchange.answer), order.operation)
        settled = self._settle(entry, order, outcome, exchange, record)
        return Written(settled, record, outcome.code, answer=exchange.answer)

    def _give_up(self, entry: Entry, exchange: Exchange, error: Exception) -> Written:
        """Record as unknown what was sent and could not be judged: a defect of ours, which must not lose the write."""
        self._note_defect(error)
        status = exchange.answer.status if exchange.answer else None
        detail = f"escrowctl itself failed on the answer ({type(error).__name__})"
        return Written(self._record_outcome(entry, Settlement(Outcome.UNKNOWN, detail, status)), None)

    def _caps(self, order: Order) -> Caps:
        return self._service.caps if order.is_capped else NO_CAPS

    @contextmanager
    def alone(self, order: Order) -> Iterator[bool]:
        """Hold what an order locks across processes; yields whether somebody else had it first.

        A wait of a second is reported at a terminal. Signals may end it. Raises `ErrorCode.BUSY` after
        twice a write's time-out.
        """
        patience, start = 2 * self._service.write_timeout, self._surroundings.monotonic()

        def wait(seconds: float) -> None:
            if self._surroundings.stderr.isatty() and self._surroundings.monotonic() - start >= _REPORTED_SECONDS:
                verb = order.operation.verb
                self._retry.tell(f"another process is working on the same {verb}; waiting up to {patience:g} s")
            self._sleep(seconds)

        with self.journal.exclusive(
            [f"{name}\n{lock}" for name in self._service.names for lock in order.locks],
            monotonic=self._surroundings.monotonic,
            sleep=wait,
            patience=patience,
        ) as waited:
            yield waited

    def refuse_known(self, order: Order) -> Written | None:
        """Raise what the journal knows against an order (7, 12), before anything is read or asked.

        The profile is asked first. Returns the stored result where the order repeats one under its
        idempotency key.
        """
        self.check(order)
        intent = self._intent(order)
        sent = self.journal.find_sent(intent, resend_throttled=self._service.repeats_throttled)
        if sent is not None:
            return self._replayed(sent, order)
        self.journal.refuse_known(intent)
        return None

    def _replayed(self, entry: Entry, order: Order) -> Written:
        return Written(entry, self._stored_record(entry, order.operation), replayed=True)

    def _intent(self, order: Order) -> Intent:
        """Return the intent that an order stands for, with a new idempotency key where it has none."""
        key = order.circumstances.idempotency_key or self._surroundings.new_uuid()
        return make_intent(self._service, order, idempotency_key=key)

    def _sleep(self, seconds: float) -> None:
        with self._signals.let_through():
            self._surroundings.sleep(seconds)

    def check(self, order: Order) -> None:
        """Raise EscrowctlError where the profile forbids a write (5, 17), or it holds the key (2); nothing was sent."""
        service = self._service
        if service.read_only:
            raise not_sent(ErrorCode.READ_ONLY, f"the profile {service.name} is read-only.")
        self._check_journal()
        service.refuse_key(*order.texts)

    def _check_journal(self) -> None:
        """Refuse a live write on a journal other than the one it is bound to: a lost one has lost the guards."""
        if not self._service.live:
            return
        for pin in self._service.journal_pins:
            if pin.journal_id != self.journal.journal_id:
                raise not_sent(
                    ErrorCode.JOURNAL_UNUSABLE,
                    f"this journal is {self.journal.journal_id}, and {pin.source} says {pin.journal_id}: what was "
                    f"written before is not known here.",
                    hint=("where this journal is: escrowctl config path", "bring the other one back, or change the id"),
                )

    def _send(self, entry: Entry, order: Order, *, unsettled: bool) -> Exchange:
        request = make_request(self._service, entry.intent, body=order.body, request_id=entry.request_id)
        evidence = Evidence()
        try:
            with self._signals.let_through():
                return self._wire.exchange(
                    request, evidence=evidence, seconds=self._service.write_timeout, limit=self._service.reply_limit
                )
        except BaseException as error:
            # A signal, or a defect of ours: only whether a byte left decides what the write has become.
            if not (evidence.sent or unsettled):
                self.journal.settle(entry, Settlement(Outcome.NOT_SENT, "it ended before a byte left"))
                raise
            if isinstance(error, Stopped):
                # The outcome is told first; that nothing more is begun comes after.
                self._signals.remember(error)
                return Exchange(evidence.sent, fault=Fault.INTERRUPTED)
            self._note_defect(error)
            return Exchange(evidence.sent, fault=Fault.DEFECT, detail=type(error).__name__)

    def _settle(
        self, entry: Entry, order: Order, outcome: Judgement, exchange: Exchange, record: Record | None
    ) -> Entry:
        answer = exchange.answer
        if answer is not None and answer.status in SUCCESS and order.operation.is_confidential:
            self._keep_secret(entry, order.operation, answer, record)
        settlement = Settlement(
            outcome=outcome.outcome,
            detail=self._in_seconds(outcome.detail, exchange),
            http_status=answer.status if answer else None,
            result_id=_made(outcome, record),
            reply=self._keep_reply(order, record) if record else None,
            may_repeat=outcome.may_repeat,
        )
        return self._record_outcome(entry, settlement)

    def _record_outcome(self, entry: Entry, settlement: Settlement) -> Entry:
        try:
            return self.journal.settle(entry, settlement)
        except EscrowctlError as error:
            if error.code is ErrorCode.OUTCOME_UNKNOWN:
                raise
            raise _unrecorded(entry, settlement, error) from error

    def _keep_reply(self, order: Order, record: Record) -> str:
        """Return what the journal keeps of a reply: no value that may be a secret."""
        if not order.operation.is_confidential:
            return encode(hide_values(record.document))
        return encode(redact(record.document, harmless=self._service.webhooks.field_names))

    def _keep_secret(self, entry: Entry, operation: Operation, answer: Answer, record: Record | None) -> None:
        """Store a 2xx reply that may hold a signing secret, readable or not: no other reply holds it."""
        if record is None:
            if operation.makes_record and answer.body:
                self.journal.secrets.store(entry, answer.body.decode("utf-8", errors="replace"), resource_id=None)
            return
        harmless = self._service.webhooks.field_names
        if find_secret(record.document) or (
            operation.makes_record and may_hold_secret(record.document, harmless=harmless)
        ):
            self.journal.secrets.store(entry, record.document, resource_id=record.located.id)

    def _in_seconds(self, detail: str, exchange: Exchange) -> str:
        if exchange.fault is Fault.TIMEOUT:
            return f"no answer came within {self._service.write_timeout:g} s"
        return detail

    def _record(self, document: Document | None, operation: Operation) -> Record | None:
        if document is None:
            return None
        return make_record(document.value, service=self._service, noun=operation.noun)

    def _stored_record(self, entry: Entry, operation: Operation) -> Record | None:
        if entry.settlement.reply is None:
            return None
        reply = read_reply(entry.settlement.reply.encode())
        return self._record(reply if isinstance(reply, Document) else None, operation)


def _made(outcome: Judgement, record: Record | None) -> str | None:
    """Return the id of what a write made, or of the record that it changed; None until it is done."""
    if outcome.outcome is not Outcome.DONE:
        return None
    return outcome.result_id or (record.located.id if record else None)


def make_intent(service: Service, order: Order, *, idempotency_key: str) -> Intent:
    """Return what the journal keeps of an order before it is sent."""
    return Intent(
        operation=order.operation.name,
        service=service.identity,
        site=service.site,
        profile=service.name,
        method=order.operation.method,
        url=service.url(order.operation.fill(order.resource_id)),
        body=order.recorded_body,
        idempotency_key=idempotency_key,
        fingerprint=order.likeness,
        resource_id=order.resource_id,
        money=order.money,
        reference=order.circumstances.reference,
        reason=order.circumstances.reason,
        allowed_duplicates=order.circumstances.despite,
        operator=operator_name(),
        account=account_of(service),
    )


def make_request(service: Service, intent: Intent, *, body: str | None, request_id: str) -> Request:
    """Return the request that an intent stands for, as it goes out: its body is the order's own."""
    headers = make_headers(
        service.key, request_id=request_id, has_body=body is not None, idempotency_key=intent.idempotency_key
    )
    return Request(intent.method, intent.url, headers, body.encode() if body is not None else None)


def _unrecorded(entry: Entry, settlement: Settlement, error: EscrowctlError) -> EscrowctlError:
    """The write's outcome is known here and nowhere else: say all of it, and exit as unknown."""
    named = f", id {settlement.result_id}" if settlement.result_id else ""
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"{entry.intent.method} {entry.intent.url} ended as {settlement.state.value} ({settlement.detail}{named}), but "
        f"the journal could not record it: {error.message} Do not send it again.",
        hint=f"once it can: escrowctl journal resolve {entry.name}",
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": settlement.http_status, "result_id": settlement.result_id},
    )


def operator_name() -> str:
    """Return who runs this, for the record: the user's name, or the uid where the machine has no name for it."""
    try:
        # A name may come from the environment as bytes that are no text.
        return getpass.getuser().encode("utf-8", "replace").decode()
    except (OSError, KeyError):
        return f"uid={os.geteuid()}"
