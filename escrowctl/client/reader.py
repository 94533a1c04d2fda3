"""Read from the service: return a record, or raise an error with the reason; retry if that may help."""

from typing import TYPE_CHECKING, NamedTuple

from escrowctl.client.connection import Connection
from escrowctl.client.http import SUCCESS, Answer, Evidence, Exchange, Request, make_headers
from escrowctl.client.problem import (
    REFUSAL_CODES,
    connection_hint,
    describe_document,
    describe_refusal,
    refusal_hint,
    reply_facts,
)
from escrowctl.client.retry import Retry, after_attempts, may_read_again
from escrowctl.config.service import LIST_LIMIT, REPLY_LIMIT, Service
from escrowctl.contract.error_reply import CODES, find_error
from escrowctl.contract.json import Broken, Defect, JsonValue
from escrowctl.contract.operations import GET_TRANSACTION, Operation
from escrowctl.contract.readable import require_escrow
from escrowctl.contract.record import Record, Records, find_items, make_item, make_record, unwrap
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hints, Outcome, command, not_sent
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

if TYPE_CHECKING:
    from escrowctl.contract.paths import Call

_FROM_THE_ORIGIN = ("Cache-Control", "no-cache")
"""Asks caches on the way not to answer with a stored reply (RFC 9111 section 5.2.1.4)."""

_DATA = CODES | {"message", "msg"}
"""Names that are data in a record, and no sign of an error."""

_PARTIAL, _REQUEST_TIMEOUT, _SERVER_ERROR = 206, 408, 500


class _Reading(NamedTuple):
    """One read and its answer, for the errors about it."""

    operation: Operation
    resource_id: str | None
    request_id: str
    answer: Answer

    def refuse(self, code: ErrorCode, why: str, *, hint: Hints = (), outcome: Outcome | None = None) -> EscrowctlError:
        what = " ".join((*self.operation.name.split("_"), *([self.resource_id] if self.resource_id else [])))
        facts = {"request_id": self.request_id, "http_status": self.answer.status}
        facts |= {"id": self.resource_id} if self.resource_id else {}
        facts |= reply_facts(self.answer, self.request_id)
        return EscrowctlError(code, f"{what}: {why}.", hint=hint, outcome=outcome, facts=facts)

    def document(self, *, decides: bool = False) -> JsonValue:
        """Return the document. Raises `ErrorCode.UNREADABLE_REPLY` if there is none.

        `decides`: a write depends on it. Raises `ErrorCode.READ_FAILED` if a cache may have stored the answer: its Age
        is not 0 (RFC 9111 section 5.1). A value that is not a number counts as stored.
        """
        answer, reply = self.answer, self.answer.reply
        if isinstance(reply, Broken):
            excerpt = f': "{" ".join(reply.excerpt.split())[:80]}"' if reply.excerpt else ""
            why = f"the service replied {answer.status}, but the reply {reply.defect.value}{excerpt}"
            raise self.refuse(ErrorCode.UNREADABLE_REPLY, why)
        age = ", ".join(value.strip() for name, value in answer.headers if name.lower() == "age")
        if decides and age.strip("0, "):
            raise self.refuse(ErrorCode.READ_FAILED, f"a cache replied, not the service (Age: {age[:40]})")
        return reply.value

    def denied(self, document: JsonValue) -> EscrowctlError:
        """Return the error of a read whose 2xx reply says in its body that it failed."""
        message = describe_document(document)
        says = f'but the reply says: "{message}"' if message else "but the reply looks like an error"
        return self.refuse(
            ErrorCode.READ_FAILED,
            f"the service replied {self.answer.status}, {says}",
            hint=command(f"api GET {self.operation.fill(self.resource_id)}", "to see the complete reply"),
        )


class Reader:
    """Reads from one service. Signals may end a read at any time, even between two writes."""

    def __init__(
        self, service: Service, connection: Connection, retry: Retry, runtime: Runtime, signals: Signals
    ) -> None:
        self._service = service
        self._connection = connection
        self._retry = retry
        self._runtime = runtime
        self._signals = signals

    @property
    def last(self) -> Exchange | None:
        """The exchange of the last request that was sent; None before the first."""
        return self._connection.last

    def read(self, operation: Operation, resource_id: str, *, decides: bool = False) -> Record:
        """Return one record. `decides`: a write depends on it, so that an answer from a cache does not count.

        Raises EscrowctlError: by the status of a refusal; `ErrorCode.READ_FAILED` or `UNREADABLE_REPLY` if the service
        failed or its reply cannot be read; `NO_CONNECTION` if nothing was sent.
        """
        record = self._read(operation, resource_id, decides=decides)
        named = (record.located.id or "").casefold()
        if named != resource_id.casefold() and self.last is not None and self.last.is_shared:
            # A reply on a shared connection may belong to an earlier read.
            self._connection.close()
            return self._read(operation, resource_id, decides=decides)
        return record

    def _read(self, operation: Operation, resource_id: str, *, decides: bool) -> Record:
        reading = self._ask(operation, resource_id, limit=REPLY_LIMIT)
        document = reading.document(decides=decides)
        record = make_record(document, pointers=self._service.pointers, noun=operation.noun)
        # A record may well have a field `error`; an error has no id.
        if record.located.id is None and _says_no(document, record.value):
            raise reading.denied(document)
        return record

    def read_escrow(self, resource_id: str) -> Record:
        """Return the escrow that a write depends on. Raises EscrowctlError if it cannot be read, or is another."""
        record = self.read(GET_TRANSACTION, resource_id, decides=True)
        require_escrow(resource_id, record)
        return record

    def read_list(self, operation: Operation, *, query: str = "", decides: bool = False) -> Records:
        """Return the items of a collection, in any envelope; `decides` as in `read`.

        `query` asks for another page than the first. Raises EscrowctlError if the list cannot be read.
        """
        reading = self._ask(operation, None, limit=LIST_LIMIT, query=query)
        document = reading.document(decides=decides)
        if _says_no(document, unwrap(document, noun=operation.noun)):
            raise reading.denied(document)
        items = find_items(document, noun=operation.noun)
        if items is None:
            raise reading.refuse(ErrorCode.UNREADABLE_REPLY, "the reply is JSON, but has no list")
        return Records(
            document, [make_item(item, pointers=self._service.pointers, noun=operation.noun) for item in items]
        )

    def probe(self, operation: Operation) -> None:
        """Check that an operation without an id gets JSON or an empty body. Raises EscrowctlError if not."""
        reading = self._ask(operation, None, limit=LIST_LIMIT)
        reply = reading.answer.reply
        is_empty = isinstance(reply, Broken) and reply.defect is Defect.EMPTY
        if not is_empty and _says_no(document := reading.document()):
            raise reading.denied(document)

    def fetch(self, call: "Call") -> "JsonValue | bytes":
        """Return the reply to a read that was typed by hand: a JSON document, or the bytes of any other complete body.

        Raises EscrowctlError for a refusal, a failed read, or an incomplete body.
        """
        reading = self._ask(call.operation, call.resource_id, query=call.query, limit=LIST_LIMIT)
        if isinstance(reading.answer.reply, Broken) and reading.answer.defect is None:
            return reading.answer.body
        return reading.document()

    def _ask(self, operation: Operation, resource_id: str | None, *, limit: int, query: str = "") -> _Reading:
        """Send a read, with retries if they may help. Raises EscrowctlError without a successful reply."""
        service, request_id = self._service, self._runtime.new_request_id()
        request = Request(
            operation.method,
            service.url(operation.fill(resource_id)) + (f"?{query}" if query else ""),
            (*make_headers(request_id=request_id, has_body=False), _FROM_THE_ORIGIN),
            may_hold_secret=operation.is_confidential,
        )
        attempts = self._retry.attempts(service.read_timeout)
        while True:
            attempts.start()
            with self._signals.let_through():
                exchange = self._connection.exchange(
                    request, evidence=Evidence(), seconds=service.read_timeout, limit=limit
                )
            if not attempts.again(exchange, allowed=may_read_again(exchange)):
                break
        if exchange.answer is None:
            facts = {"request_id": request_id}
            message = f"{service.origin}: {exchange.why}{after_attempts(attempts.count)}."
            if exchange.sent:
                raise EscrowctlError(ErrorCode.READ_FAILED, message, effect=Effect.ONLY_READ, facts=facts)
            raise not_sent(ErrorCode.NO_CONNECTION, message, hint=connection_hint(service, exchange.why), facts=facts)
        reading = _Reading(operation, resource_id, request_id, exchange.answer)
        status = exchange.answer.status
        if status in SUCCESS and status != _PARTIAL:
            return reading
        is_failure = status >= _SERVER_ERROR or status in (_PARTIAL, _REQUEST_TIMEOUT)
        raise reading.refuse(
            ErrorCode.READ_FAILED if is_failure else REFUSAL_CODES.get(status, ErrorCode.REFUSED),
            f"the service replied {describe_refusal(exchange.answer)}{after_attempts(attempts.count)}",
            hint=refusal_hint(service, status, exchange.answer),
            outcome=None if is_failure else Outcome.REFUSED,
        )


def _says_no(*documents: JsonValue) -> bool:
    # A document that is no object says nothing about success: it is shown unchanged.
    return any(isinstance(document, dict) and find_error(document, data=_DATA) for document in documents)
