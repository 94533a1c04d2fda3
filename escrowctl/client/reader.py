"""Read records and lists from the service, with retries. A failed read raises EscrowctlError with the reason."""

from typing import TYPE_CHECKING, NamedTuple

from escrowctl.client.connection import Connection
from escrowctl.client.http import SUCCESS_STATUSES, Answer, Evidence, Request, make_headers
from escrowctl.client.problem import (
    REFUSAL_CODES,
    advise_connection,
    advise_refusal,
    describe_error_document,
    describe_refusal,
    list_reply_facts,
)
from escrowctl.client.retry import Retry, describe_attempts, may_read_again
from escrowctl.config.service import MAX_LIST_BYTES, MAX_REPLY_BYTES, Service
from escrowctl.contract.error_reply import CODE_FIELD_NAMES, find_failure
from escrowctl.contract.json import Defect, JsonValue, UnreadableReply
from escrowctl.contract.operations import GET_TRANSACTION, Operation
from escrowctl.contract.readable import require_escrow
from escrowctl.contract.record import Record, Records, find_items, make_item, make_record, unwrap_record
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hints, Outcome, command, not_sent
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

if TYPE_CHECKING:
    from escrowctl.contract.paths import Call

_NO_CACHE_HEADER = ("Cache-Control", "no-cache")
"""Asks caches between escrowctl and the service for a fresh reply (RFC 9111 section 5.2.1.4)."""

_DATA_FIELDS = CODE_FIELD_NAMES | {"message", "msg"}
"""Names of fields that are data in a record: there they do not report an error."""

_PARTIAL, _REQUEST_TIMEOUT, _SERVER_ERROR = 206, 408, 500


class _ReadAnswer(NamedTuple):
    """A read and its answer. Its methods return the reply's document, and errors that name the read."""

    operation: Operation
    resource_id: str | None
    request_id: str
    answer: Answer

    def make_error(
        self, code: ErrorCode, problem: str, *, hint: Hints = (), outcome: Outcome | None = None
    ) -> EscrowctlError:
        call = " ".join((*self.operation.name.split("_"), *([self.resource_id] if self.resource_id else [])))
        facts = {"request_id": self.request_id, "http_status": self.answer.status}
        facts |= {"id": self.resource_id} if self.resource_id else {}
        facts |= list_reply_facts(self.answer, self.request_id)
        return EscrowctlError(code, f"{call}: {problem}.", hint=hint, outcome=outcome, facts=facts)

    def require_document(self, *, for_write: bool = False) -> JsonValue:
        """Return the JSON document of the reply. Raises `ErrorCode.UNREADABLE_REPLY` if the reply is unreadable.

        `for_write`: raises `ErrorCode.READ_FAILED` if the reply has an Age (RFC 9111 section 5.1) other than 0: it
        may come from a cache, and a write depends on it.
        """
        answer, reply = self.answer, self.answer.reply
        if isinstance(reply, UnreadableReply):
            excerpt = f': "{" ".join(reply.excerpt.split())[:80]}"' if reply.excerpt else ""
            problem = f"the service replied {answer.status}, but the reply {reply.defect}{excerpt}"
            raise self.make_error(ErrorCode.UNREADABLE_REPLY, problem)
        age = ", ".join(value.strip() for name, value in answer.headers if name.lower() == "age")
        if for_write and age.strip("0, "):
            raise self.make_error(ErrorCode.READ_FAILED, f"a cache replied, not the service (Age: {age[:40]})")
        return reply.value

    def refuse_failure(self, document: JsonValue, record: JsonValue = None) -> None:
        """Raise `ErrorCode.READ_FAILED` if the body of a 2xx reply, or the record in the body, reports a failure.

        A document that is no object says nothing about success: it is shown unchanged.
        """
        if any(isinstance(part, dict) and find_failure(part, data_names=_DATA_FIELDS) for part in (document, record)):
            message = describe_error_document(document)
            report = f': "{message}"' if message else ""
            raise self.make_error(
                ErrorCode.READ_FAILED,
                f"the service replied {self.answer.status}, but the reply reports an error{report}",
                hint=command(f"api GET {self.operation.fill_path(self.resource_id)}", "to see the complete reply"),
            )


class Reader:
    """Reads from one service, over one connection. A signal may end a read at any time."""

    def __init__(
        self, service: Service, connection: Connection, retry: Retry, runtime: Runtime, signals: Signals
    ) -> None:
        self.service = service
        self.connection = connection
        self.retry = retry
        self.runtime = runtime
        self.signals = signals

    def read(self, operation: Operation, resource_id: str, *, for_write: bool = False) -> Record:
        """Return one record. `for_write`: a write depends on the record, so a cached reply is an error.

        Raises EscrowctlError. A refusal has the error code of its status. Other codes are `ErrorCode.READ_FAILED`,
        `UNREADABLE_REPLY`, and, if nothing was sent, `NO_CONNECTION`.
        """
        record = self._read(operation, resource_id, for_write=for_write)
        found_id = (record.known.id or "").casefold()
        if found_id != resource_id.casefold() and self.connection.last is not None and self.connection.last.is_shared:
            # A reply on a shared connection may belong to an earlier read.
            self.connection.close()
            record = self._read(operation, resource_id, for_write=for_write)
        return record

    def _read(self, operation: Operation, resource_id: str, *, for_write: bool) -> Record:
        reading = self._send_read(operation, resource_id, limit=MAX_REPLY_BYTES)
        document = reading.require_document(for_write=for_write)
        record = make_record(document, pointers=self.service.pointers, noun=operation.noun)
        # A record may well have a field `error`; an error has no id.
        if record.known.id is None:
            reading.refuse_failure(document, record.value)
        return record

    def read_escrow(self, resource_id: str) -> Record:
        """Return an escrow on which a write depends. Raises EscrowctlError if the reply is not this escrow."""
        record = self.read(GET_TRANSACTION, resource_id, for_write=True)
        require_escrow(resource_id, record)
        return record

    def read_list(self, operation: Operation, *, query: str = "", for_write: bool = False) -> Records:
        """Return one page of a list. `query` is the page's query, empty for the first page. Raises EscrowctlError.

        `for_write`: a write depends on the list, so a cached reply is an error.
        """
        reading = self._send_read(operation, None, limit=MAX_LIST_BYTES, query=query)
        document = reading.require_document(for_write=for_write)
        reading.refuse_failure(document, unwrap_record(document, noun=operation.noun))
        items = find_items(document, noun=operation.noun)
        if items is None:
            raise reading.make_error(ErrorCode.UNREADABLE_REPLY, "the reply is JSON, but has no list")
        return Records(
            document, [make_item(item, pointers=self.service.pointers, noun=operation.noun) for item in items]
        )

    def probe(self, operation: Operation) -> None:
        """Send a read without an id. Raises EscrowctlError unless it succeeds with JSON or an empty body."""
        reading = self._send_read(operation, None, limit=MAX_LIST_BYTES)
        reply = reading.answer.reply
        if not (isinstance(reply, UnreadableReply) and reply.defect is Defect.EMPTY):
            reading.refuse_failure(reading.require_document())

    def fetch(self, call: "Call") -> "JsonValue | bytes":
        """Send a read that was typed by hand. Return its JSON document, or the bytes of a body that is not JSON.

        Raises EscrowctlError for a refusal, a failed read, or a body with an `Answer.defect`.
        """
        reading = self._send_read(call.operation, call.resource_id, query=call.query, limit=MAX_LIST_BYTES)
        if isinstance(reading.answer.reply, UnreadableReply) and reading.answer.defect is None:
            return reading.answer.body
        return reading.require_document()

    def _send_read(self, operation: Operation, resource_id: str | None, *, limit: int, query: str = "") -> _ReadAnswer:
        """Send a read; retry it after a temporary failure. Raises EscrowctlError if no attempt gets a 2xx reply."""
        service, request_id = self.service, self.runtime.new_request_id()
        request = Request(
            operation.method,
            service.make_url(operation.fill_path(resource_id)) + (f"?{query}" if query else ""),
            (*make_headers(request_id=request_id, has_body=False), _NO_CACHE_HEADER),
            may_hold_secret=operation.is_confidential,
        )
        attempts = self.retry.make_attempts(service.read_timeout)
        while True:
            attempts.start()
            with self.signals.let_through():
                exchange = self.connection.exchange(
                    request, evidence=Evidence(), seconds=service.read_timeout, limit=limit
                )
            if not attempts.wait_if_repeatable(exchange, allowed=may_read_again(exchange)):
                break
        if exchange.answer is None:
            facts = {"request_id": request_id}
            message = f"{service.origin}: {exchange.why}{describe_attempts(attempts.count)}."
            if exchange.sent:
                raise EscrowctlError(ErrorCode.READ_FAILED, message, effect=Effect.ONLY_READ, facts=facts)
            raise not_sent(ErrorCode.NO_CONNECTION, message, hint=advise_connection(service, exchange.why), facts=facts)
        reading = _ReadAnswer(operation, resource_id, request_id, exchange.answer)
        status = exchange.answer.status
        if status in SUCCESS_STATUSES and status != _PARTIAL:
            return reading
        is_failure = status >= _SERVER_ERROR or status in (_PARTIAL, _REQUEST_TIMEOUT)
        raise reading.make_error(
            ErrorCode.READ_FAILED if is_failure else REFUSAL_CODES.get(status, ErrorCode.REFUSED),
            f"the service replied {describe_refusal(exchange.answer)}{describe_attempts(attempts.count)}",
            hint=advise_refusal(service, status, exchange.answer),
            outcome=None if is_failure else Outcome.REFUSED,
        )
