"""Reads: one record, or an error that says why there is none; tried again where that may help."""

from escrowctl.client.exchange import SUCCESS, Answer, Evidence, Exchange, Request
from escrowctl.client.failures import cached, denied, no_list, read_failure, unreadable
from escrowctl.client.headers import make_headers
from escrowctl.client.records import Record, Records
from escrowctl.client.retry import Retry, may_read_again
from escrowctl.client.transport import Wire
from escrowctl.config.service import LIST_LIMIT, REPLY_LIMIT, Service
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import Operation
from escrowctl.contract.paths import Call
from escrowctl.contract.record import find_items, locate, looks_like_error, unwrap
from escrowctl.contract.reply import Broken, Defect
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

_FROM_THE_ORIGIN = ("Cache-Control", "no-cache")
"""Asks caches between to answer with nothing that they have stored (RFC 9111 section 5.2.1.4)."""


class Reader:
    """Reads from one service. Signals may end a read at any time, even between two writes."""

    def __init__(
        self, service: Service, wire: Wire, retry: Retry, surroundings: Surroundings, signals: Signals
    ) -> None:
        self._service = service
        self._wire = wire
        self._retry = retry
        self._surroundings = surroundings
        self._signals = signals

    def read(self, operation: Operation, resource_id: str | None = None, *, decides: bool = False) -> Record:
        """Return one record. `decides`: whether a write depends on it, so that a cache's answer is none.

        Raises EscrowctlError: 4 to 9 by the status, 10 where the service failed or its reply cannot
        be read, 11 where no connection came about.
        """
        document, answer, request_id = self._fetch(operation, resource_id, limit=REPLY_LIMIT)
        if decides:
            _refuse_cached(operation, answer, resource_id, request_id)
        record = make_record(document, service=self._service, noun=operation.noun)
        # A record may well have a field `error`; an error has no id.
        if record.located.id is None and _says_no(document, record.value, noun=operation.noun):
            raise denied(operation, answer, document, resource_id=resource_id, request_id=request_id)
        return record

    def read_list(self, operation: Operation, *, decides: bool = False) -> Records:
        """Return the items of a collection, whatever envelope it came in; `decides` and errors as in `read`."""
        document, answer, request_id = self._fetch(operation, None, limit=LIST_LIMIT)
        if decides:
            _refuse_cached(operation, answer, None, request_id)
        if _says_no(document, unwrap(document, noun=operation.noun), noun=operation.noun):
            raise denied(operation, answer, document, resource_id=None, request_id=request_id)
        items = find_items(document, noun=operation.noun)
        if items is None:
            raise no_list(operation, request_id)
        return Records(document, [make_item(item, service=self._service, noun=operation.noun) for item in items])

    def probe(self, operation: Operation) -> None:
        """Return where the service answers an operation without an id, with JSON or nothing; raises as `read` does."""
        answer, request_id = self._ask(operation, None, limit=LIST_LIMIT)
        reply = answer.read()
        if isinstance(reply, Broken) and reply.defect is not Defect.EMPTY:
            raise unreadable(operation, answer, reply, resource_id=None, request_id=request_id)
        if not isinstance(reply, Broken) and _says_no(reply.value, noun=operation.noun):
            raise denied(operation, answer, reply.value, resource_id=None, request_id=request_id)

    def fetch(self, call: Call) -> "JsonValue | bytes":
        """Return what a call typed by hand reads: a JSON document, or the bytes of anything else that came whole.

        Raises as `read` does, but for a reply that is no JSON.
        """
        limit = LIST_LIMIT
        answer, request_id = self._ask(call.operation, call.resource_id, query=call.query, limit=limit)
        reply = answer.read()
        if not isinstance(reply, Broken):
            return reply.value
        if answer.defect is not None:
            raise unreadable(call.operation, answer, reply, resource_id=call.resource_id, request_id=request_id)
        return answer.body

    def _fetch(self, operation: Operation, resource_id: str | None, *, limit: int) -> tuple[JsonValue, Answer, str]:
        answer, request_id = self._ask(operation, resource_id, limit=limit)
        reply = answer.read()
        if isinstance(reply, Broken):
            raise unreadable(operation, answer, reply, resource_id=resource_id, request_id=request_id)
        return reply.value, answer, request_id

    def _ask(self, operation: Operation, resource_id: str | None, *, limit: int, query: str = "") -> tuple[Answer, str]:
        service, request_id = self._service, self._surroundings.new_uuid()
        request = Request(
            operation.method,
            service.url(operation.fill(resource_id)) + (f"?{query}" if query else ""),
            (*make_headers(service.key, request_id=request_id, has_body=False), _FROM_THE_ORIGIN),
        )
        exchange = self._exchange(request, limit=limit)
        if exchange.answer is None or exchange.answer.status not in SUCCESS:
            raise read_failure(service, operation, exchange, resource_id=resource_id, request_id=request_id)
        return exchange.answer, request_id

    def _exchange(self, request: Request, *, limit: int) -> Exchange:
        """Send a request until it brings something, or may not be sent again; return the last exchange."""
        seconds = self._service.read_timeout
        attempts = self._retry.attempts(seconds)
        while True:
            attempts.start()
            with self._signals.let_through():
                exchange = self._wire.exchange(request, evidence=Evidence(), seconds=seconds, limit=limit)
            if not attempts.again(exchange, allowed=may_read_again(exchange)):
                return exchange


def _refuse_cached(operation: Operation, answer: Answer, resource_id: str | None, request_id: str) -> None:
    """Raise EscrowctlError `ErrorCode.READ_FAILED` for an answer that may be stored: its Age is not 0.

    RFC 9111 section 5.1: a cache adds the field. One that cannot be read as a number says no more.
    """
    ages = [value.strip() for name, value in answer.headers if name.lower() == "age"]
    if any(age.strip("0") for age in ages):
        raise cached(operation, answer, ", ".join(ages)[:40], resource_id=resource_id, request_id=request_id)


def _says_no(*documents: JsonValue, noun: str) -> bool:
    # What is no object says nothing of success: it is shown as it stands.
    return any(isinstance(document, dict) and looks_like_error(document, noun=noun) for document in documents)


def make_record(document: JsonValue, *, service: Service, noun: str) -> Record:
    """Take the record out of its envelope and find what escrowctl understands in it."""
    value = unwrap(document, noun=noun, pointers=service.pointers)
    return Record(document, value, locate(value, noun=noun, pointers=service.pointers, document=document))


def make_item(item: JsonValue, *, service: Service, noun: str) -> Record:
    """Find what escrowctl understands in an item of a list; items stand in no envelope of their own."""
    return Record(item, item, locate(item, noun=noun, pointers=service.pointers))
