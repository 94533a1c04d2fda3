"""Judge a write by its exchange: not sent, refused, unknown, or done.

Only the evidence and the status decide, never the type of an exception. A method that is not idempotent may be
repeated only if it is known not to have been applied (RFC 9110 section 9.2.2): the document of this service does
not mention deduplication (contract/INTERFACE.md section 7). A status that is not listed here is unknown.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from escrowctl.client.http import THROTTLED_STATUSES, Answer, Exchange
from escrowctl.client.problem import REFUSAL_CODES, describe_refusal, list_request_ids
from escrowctl.config.service import Service
from escrowctl.contract.error_reply import CODE_FIELD_NAMES, STATUS_FIELD_NAMES, find_failure
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import Defect, Document, JsonValue, UnreadableReply, read_value
from escrowctl.contract.operations import CREATE_TRANSACTION, Operation
from escrowctl.contract.record import (
    NO_POINTERS,
    Pointers,
    Record,
    as_text,
    find_ids,
    find_text,
    is_possible_id,
    make_record,
    resolve_pointer,
    unwrap_record,
)
from escrowctl.errors import ErrorCode, Outcome
from escrowctl.journal.model import Entry
from escrowctl.runtime import run_of
from escrowctl.writes.kinds import kind_of

_REFUSED_STATUSES = frozenset({400, 402, 404, 405, 406, *range(410, 416), 417, 421, 422, 424, 428, 431, 451, 501})
"""Statuses that refuse a write with `ErrorCode.REFUSED`. Refusals with another code are in `REFUSAL_CODES`."""
_CREATED, _ACCEPTED = 201, 202
_DONE_STATUSES = frozenset({200, _CREATED, _ACCEPTED, 203, 204})
"""Statuses of success. Others are unknown: 206 is a part, 207 (RFC 4918 section 11.1) is about several requests."""
_LOCATION_COLLECTION = "transactions"
_MAX_SHOWN_KEY = 80

NO_ID_FOUND = "escrowctl found no id in the reply"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class SentRequest(NamedTuple):
    """The request that a reply is compared with.

    `sent_ids` are its ids, key and reference, case-folded: a reply that repeats one of them names no new id.
    `pointers` are the profile's JSON Pointers to fields. `is_failed(status)`: an escrow with this status failed.
    """

    url: str = ""
    body: JsonValue = None
    sent_ids: frozenset[str] = frozenset()
    pointers: Pointers = NO_POINTERS
    is_failed: Callable[[str | None], bool] = lambda _: False


class Judgement(NamedTuple):
    """The outcome that one attempt proves, the reason as text, and the error code.

    `may_repeat`: the service replied 425 or 429, so it processed nothing. `result_id` is the id of the created
    record; if the outcome is unknown, only a read of this id can prove the create. `record` is a JSON reply.
    """

    outcome: Outcome
    detail: str
    code: ErrorCode | None = None
    may_repeat: bool = False
    result_id: str | None = None
    record: Record | None = None

    def with_earlier_unknown(self) -> "Judgement":
        """Return the judgement to use if an earlier attempt of the same write may have been applied.

        An attempt that is not done becomes unknown: a service may refuse it because it applied the earlier one.
        """
        if self.outcome is Outcome.DONE:
            return self
        if self.outcome is Outcome.UNKNOWN:
            return self._replace(code=None)
        last_outcome = "was not sent" if self.outcome is Outcome.NOT_SENT else "was refused"
        detail = f"an earlier attempt may have succeeded; the last one {last_outcome}: {self.detail}"
        return Judgement(Outcome.UNKNOWN, detail, record=self.record)


def judge_write(operation: Operation, exchange: Exchange, *, sent: SentRequest) -> Judgement:
    """Return the judgement of a write by its exchange. `sent` is the request that the exchange carried.

    A 409 is a refusal for kinds with `conflict_is_refusal`. For all other kinds it is unknown: a proxy may have
    sent the request twice, and the service may have applied the first copy.
    """
    if exchange.answer is not None:
        judged = _judge_answer(operation, exchange.answer, sent)
        if judged.code is ErrorCode.CONFLICT and not kind_of(operation.name).conflict_is_refusal:
            detail = f"the service replied {judged.detail}: it may already have received this request"
            return Judgement(Outcome.UNKNOWN, detail, ErrorCode.CONFLICT, record=judged.record)
        return judged
    if not exchange.sent:
        return Judgement(Outcome.NOT_SENT, exchange.why, ErrorCode.NO_CONNECTION)
    return Judgement(Outcome.UNKNOWN, exchange.why)


def _judge_answer(operation: Operation, answer: Answer, sent: SentRequest) -> Judgement:
    status, reply = answer.status, answer.reply
    record = None
    if isinstance(reply, Document):
        record = make_record(reply.value, pointers=sent.pointers, noun=operation.noun)
    if status in _DONE_STATUSES:
        return _judge_success(operation, answer, sent, record)._replace(record=record)
    code = REFUSAL_CODES.get(status)
    if code is not None or status in _REFUSED_STATUSES:
        may_repeat = status in THROTTLED_STATUSES
        return Judgement(
            Outcome.REFUSED, describe_refusal(answer), code or ErrorCode.REFUSED, may_repeat, record=record
        )
    return Judgement(Outcome.UNKNOWN, f"the service replied {describe_refusal(answer)}", record=record)


def _judge_success(operation: Operation, answer: Answer, sent: SentRequest, record: Record | None) -> Judgement:
    """Judge a reply with a success status: done unless its body has an error. A create also needs a new id."""
    reply = answer.reply
    is_empty = isinstance(reply, UnreadableReply) and reply.defect is Defect.EMPTY
    if isinstance(reply, UnreadableReply) and not is_empty:
        return _judge_unproven(answer, f"the reply {reply.defect.value}")
    if record is not None and (error := _find_error(operation, record, sent)):
        return _judge_unproven(answer, f"the reply looks like an error ({error})")
    if kind_of(operation.name).needs_id:
        reply_id = (record.known.id if record else None) or _find_location_id(answer, sent.url)
        if is_empty and reply_id is None:
            return _judge_unproven(answer, f"the reply {Defect.EMPTY.value}")
        return _judge_create(answer, reply_id, sent)
    return Judgement(Outcome.DONE, f"{answer.status}, no reply body" if is_empty else str(answer.status))


def _find_error(operation: Operation, record: Record, sent: SentRequest) -> str | None:
    """Return the error that a reply reports, or None. A failed status next to an id is not such an error."""
    parts: list[JsonValue] = [record.value] if record.value is record.document else [record.document, record.value]
    if is_possible_id(record.known.id) and sent.is_failed(record.known.status):
        if kind_of(operation.name).needs_id:
            return None
        parts = [dict(part, status=None, state=None) if isinstance(part, dict) else part for part in parts]
    pointer = sent.pointers.id
    has_pointed = pointer is not None and any(as_text(resolve_pointer(part, pointer)) for part in parts)
    data = CODE_FIELD_NAMES | STATUS_FIELD_NAMES if has_pointed else frozenset[str]()
    return next(filter(None, (find_failure(part, sent_document=sent.body, data_names=data) for part in parts)), None)


def _judge_create(answer: Answer, reply_id: str | None, sent: SentRequest) -> Judgement:
    """Judge a create. An id from the service proves it; after a 202, only a read of the id (RFC 9110, 15.3.3)."""
    if reply_id is None or not is_possible_id(reply_id):
        return _judge_unproven(answer, NO_ID_FOUND)
    if reply_id.casefold() in sent.sent_ids:
        return _judge_unproven(
            answer, f'the id in the reply, "{reply_id[:80]}", was also in the request, so it may not be new'
        )
    if answer.status == _ACCEPTED:
        # This is stored before the read: it must be true for every result of the read.
        return _judge_unproven(answer, f"only reading {reply_id[:80]} can confirm it", result_id=reply_id)
    return Judgement(Outcome.DONE, str(answer.status), result_id=reply_id)


def _find_location_id(answer: Answer, url: str) -> str | None:
    """Return the id in a 201's `Location: .../transactions/ID` of the same origin (RFC 9110 section 15.3.2)."""
    location = answer.find_header("location") if answer.status == _CREATED else None
    if not location:
        return None
    try:
        target = urlsplit(urljoin(url, location))
        is_same_origin = _split_origin(target) == _split_origin(urlsplit(url))
    except ValueError:
        return None
    *_, collection, found = ["", *target.path.removesuffix("/").split("/")]
    return unquote(found) if is_same_origin and collection == _LOCATION_COLLECTION else None


def _split_origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port (RFC 6454 section 4); raises ValueError for an invalid port."""
    return url.scheme, url.hostname, url.port or _DEFAULT_PORTS.get(url.scheme)


def _judge_unproven(answer: Answer, why: str, *, result_id: str | None = None) -> Judgement:
    return Judgement(Outcome.UNKNOWN, f"the service replied {answer.status}, but {why}", result_id=result_id)


def find_other_write(answer: Answer, entry: Entry, document: JsonValue, service: Service) -> str | None:
    """Return a clause that names the id, key or reference of another write in a reply; None if it has none.

    `document` is the body of this write. Ignores request ids of the service's own, and of earlier attempts.
    """
    own_ids = entry.request_ids | {entry.request_id}
    for reply_id in list_request_ids(answer):
        # A proxy may change or add digits. The last 12 are enough to identify a request.
        if run_of(reply_id) == run_of(entry.request_id) and not any(own_id[-12:] in reply_id for own_id in own_ids):
            return f"naming the request id {reply_id}"
    parts = list[JsonValue]()
    if isinstance(answer.reply, Document):
        reply = answer.reply.value
        inner = unwrap_record(reply, noun=CREATE_TRANSACTION.noun)
        parts = [reply] if inner is reply else [reply, inner]
    echoed = find_text(document, "idempotency_key")
    keys = [answer.find_header("Idempotency-Key"), *(find_text(part, "idempotency_key") for part in parts)]
    keys = [key for key in keys if key != echoed]
    compared: list[tuple[str, str | None, list[str | None]]] = [("idempotency key", entry.intent.idempotency_key, keys)]
    if service.reference_field is not None and entry.intent.has_no_id:
        sent = find_text(document, service.reference_field)
        compared.append(("reference", sent, [find_text(part, service.reference_field) for part in parts]))
    for label, sent, found in compared:
        for other in found:
            if sent and other and _fold_key(other) != _fold_key(sent):
                return f'naming the {label} "{other[:_MAX_SHOWN_KEY]}"'
    return None


def _fold_key(text: str) -> str:
    # A header may have the key in quotation marks, as a string of a structured field (RFC 9651 section 3.3.3).
    return fold_reference(text).strip('"').casefold()


def make_sent_request(service: Service, entry: Entry, document: JsonValue = None) -> SentRequest:
    """Return the request of an entry's last attempt, to compare the reply with it.

    `document` is its body; None: as the journal stores it, perhaps with hashes in place of texts.
    """
    intent, noun, pointers = entry.intent, CREATE_TRANSACTION.noun, service.pointers
    if document is None:
        document = read_value(intent.body)
    pointed_id = as_text(resolve_pointer(document, pointers.id)) if pointers.id else None
    own_ids = (intent.idempotency_key, intent.reference, entry.request_id, pointed_id, *find_ids(document, noun=noun))
    sent_ids = frozenset(name.casefold() for name in own_ids if name)
    return SentRequest(intent.url, document, sent_ids, pointers, service.is_failed)


def judge_stored_reply(service: Service, entry: Entry) -> Judgement | None:
    """Return the judgement of a create's stored reply by the current profile; None if it is no success."""
    status, reply = entry.settlement.http_status, entry.settlement.reply
    if entry.intent.operation != CREATE_TRANSACTION.name or reply is None or status not in _DONE_STATUSES:
        return None
    return _judge_answer(CREATE_TRANSACTION, Answer(status, (), reply.encode()), make_sent_request(service, entry))
