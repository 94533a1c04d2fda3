"""Judge a write by its exchange: not sent, refused, unknown, or done.

The table is by evidence and status, never by exception type: RFC 9110 section 9.2.2 forbids to repeat a method that
is not idempotent without knowing that it was not applied, and this service promises no deduplication
(contract/INTERFACE.md section 7: not shown). A status that is not listed is unknown.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from escrowctl.client.http import THROTTLED, Answer, Exchange
from escrowctl.client.problem import REFUSAL_CODES, describe_refusal, list_request_ids
from escrowctl.config.service import Service
from escrowctl.contract.error_reply import CODES, STATUS_CODES, find_error
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import Broken, Defect, Document, JsonValue, read_reply
from escrowctl.contract.operations import CREATE_TRANSACTION, Operation
from escrowctl.contract.record import (
    NO_POINTERS,
    Pointers,
    Record,
    as_text,
    find_ids,
    find_text,
    is_id,
    locate,
    make_record,
    resolve_pointer,
    unwrap,
)
from escrowctl.errors import ErrorCode, Outcome
from escrowctl.journal.model import Entry
from escrowctl.runtime import are_of_one_run
from escrowctl.writes.kinds import kind_of

_REFUSED_STATUSES = frozenset({400, 402, 404, 405, 406, *range(410, 416), 417, 421, 422, 424, 428, 431, 451, 501})
"""Refusals; those with a code of their own are in `REFUSAL_CODES`."""
_CREATED, _ACCEPTED = 201, 202
_DONE_STATUSES = frozenset({200, _CREATED, _ACCEPTED, 203, 204})
"""Any other status is unknown: 206 is a part, 207 (RFC 4918 section 11.1) is about several requests."""
_COLLECTION = "transactions"
_MOST_SHOWN = 80

NO_ID = "escrowctl found no id in the reply"
_PORTS = {"http": 80, "https": 443}


class Sent(NamedTuple):
    """The request that a reply is compared with: its URL, its body, and the ids in it.

    One of `own_ids` proves nothing in a reply: it may be an echo. `pointers` are the profile's JSON Pointers to
    fields. `is_failed` says whether a status is that of a failed escrow.
    """

    url: str = ""
    body: JsonValue = None
    own_ids: frozenset[str] = frozenset()
    pointers: Pointers = NO_POINTERS
    is_failed: Callable[[str | None], bool] = lambda _: False


class Judgement(NamedTuple):
    """The outcome that one attempt proves, the reason, and a refusal's code.

    `may_repeat`: a 425 or 429, which comes before processing. `result_id` is the id of the created record; if the
    outcome is unknown, only a read of this id can prove it. `record` is the reply if it is JSON.
    """

    outcome: Outcome
    detail: str
    code: ErrorCode | None = None
    may_repeat: bool = False
    result_id: str | None = None
    record: Record | None = None

    def with_earlier_unknown(self) -> "Judgement":
        """Return the judgement of an attempt after an earlier attempt that may have been applied.

        Only a done attempt settles the write: a service may refuse the second because it applied the first.
        """
        if self.outcome is Outcome.DONE:
            return self
        if self.outcome is Outcome.UNKNOWN:
            return self._replace(code=None)
        what = "was not sent" if self.outcome is Outcome.NOT_SENT else "was refused"
        detail = f"an earlier attempt may have succeeded; the last one {what}: {self.detail}"
        return Judgement(Outcome.UNKNOWN, detail, record=self.record)


_NOTHING_SENT = Sent()


def judge_write(operation: Operation, exchange: Exchange, *, sent: Sent = _NOTHING_SENT) -> Judgement:
    """Return the judgement of a write's exchange.

    A 409 is unknown: a proxy may have sent the request twice, and the first may have been applied. For kinds with
    `conflict_is_refusal` it is a refusal: the record is in another state.
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


def _judge_answer(operation: Operation, answer: Answer, sent: Sent) -> Judgement:
    status, reply = answer.status, answer.reply
    record = None
    if isinstance(reply, Document):
        record = make_record(reply.value, pointers=sent.pointers, noun=operation.noun)
    if status in _DONE_STATUSES:
        return _judge_success(operation, answer, sent, record)._replace(record=record)
    code = REFUSAL_CODES.get(status)
    if code is not None or status in _REFUSED_STATUSES:
        may_repeat = status in THROTTLED
        return Judgement(
            Outcome.REFUSED, describe_refusal(answer), code or ErrorCode.REFUSED, may_repeat, record=record
        )
    return Judgement(Outcome.UNKNOWN, f"the service replied {describe_refusal(answer)}", record=record)


def _judge_success(operation: Operation, answer: Answer, sent: Sent, record: Record | None) -> Judgement:
    """Judge a 2xx: it is done unless its body says otherwise. The reply to a create must name the new escrow."""
    reply = answer.reply
    is_empty = isinstance(reply, Broken) and reply.defect is Defect.EMPTY
    if isinstance(reply, Broken) and not is_empty:
        return _unproven(answer, f"the reply {reply.defect.value}")
    if record is not None and (error := _find_error(operation, record, sent)):
        return _unproven(answer, f"the reply looks like an error ({error})")
    if kind_of(operation.name).needs_id:
        found = (record.located.id if record else None) or _id_in_location(answer, sent.url)
        if is_empty and found is None:
            return _unproven(answer, f"the reply {Defect.EMPTY.value}")
        return _judge_create(answer, found, sent)
    return Judgement(Outcome.DONE, f"{answer.status}, no reply body" if is_empty else str(answer.status))


def _find_error(operation: Operation, record: Record, sent: Sent) -> str | None:
    """Return the part of a reply that says that the write failed; a failed status next to an id is judged later."""
    parts: list[JsonValue] = [record.document, record.value]
    if is_id(record.located.id) and sent.is_failed(record.located.status):
        if kind_of(operation.name).needs_id:
            return None
        parts = [dict(part, status=None, state=None) if isinstance(part, dict) else part for part in parts]
    pointer = sent.pointers.id
    has_pointed = pointer is not None and any(as_text(resolve_pointer(part, pointer)) for part in parts)
    data = CODES | STATUS_CODES if has_pointed else frozenset[str]()
    return next(filter(None, (find_error(part, sent=sent.body, data=data) for part in parts)), None)


def _judge_create(answer: Answer, found: str | None, sent: Sent) -> Judgement:
    """Judge a create: only an id from the service proves it. After a 202 it must be read (RFC 9110 section 15.3.3)."""
    if found is None or not is_id(found):
        return _unproven(answer, NO_ID)
    if found.casefold() in sent.own_ids:
        return _unproven(answer, f'the id in the reply, "{found[:80]}", was also in the request, so it proves nothing')
    if answer.status == _ACCEPTED:
        # This is stored before the read: it must be true for every result of the read.
        why = f"only reading {found[:80]} can confirm it"
        return Judgement(Outcome.UNKNOWN, _answered(answer, why), result_id=found)
    return Judgement(Outcome.DONE, str(answer.status), result_id=found)


def _id_in_location(answer: Answer, url: str) -> str | None:
    """Return the id in `Location: .../transactions/ID` of a 201 (RFC 9110 section 15.3.2), of the same origin."""
    place = answer.header("location") if answer.status == _CREATED else None
    if not place:
        return None
    try:
        target = urlsplit(urljoin(url, place))
        same = _origin_of(target) == _origin_of(urlsplit(url))
    except ValueError:
        return None
    *_, collection, found = ["", *target.path.removesuffix("/").split("/")]
    return unquote(found) if same and collection == _COLLECTION else None


def _origin_of(url: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port (RFC 6454 section 4); raises ValueError for an invalid port."""
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme)


def _unproven(answer: Answer, why: str) -> Judgement:
    return Judgement(Outcome.UNKNOWN, _answered(answer, why))


def _answered(answer: Answer, why: str) -> str:
    return f"the service replied {answer.status}, but {why}"


def find_contradiction(answer: Answer, entry: Entry, body: str | None, service: Service) -> str | None:
    """Return a clause with the id, key or reference in a reply that belongs to another write; None if there is none.

    `body` is this write's. A request id of the service's own, or of an earlier attempt, belongs to no other write.
    """
    own = entry.requests | {entry.request_id}
    for named in list_request_ids(answer):
        # A proxy may mark a digit of an id, or add to it; the last digits tell one request from another.
        if are_of_one_run(named, entry.request_id) and not any(name[-12:] in named for name in own):
            return f"naming the request id {named}"
    parts: tuple[JsonValue, ...] = ()
    if isinstance(answer.reply, Document):
        parts = (answer.reply.value, unwrap(answer.reply.value, noun=CREATE_TRANSACTION.noun))
    document = _read(body)
    echoed = find_text(document, "idempotency_key")
    keys = [answer.header("Idempotency-Key"), *(find_text(part, "idempotency_key") for part in parts)]
    keys = [key for key in keys if key != echoed]
    compared: list[tuple[str, str | None, list[str | None]]] = [("idempotency key", entry.intent.idempotency_key, keys)]
    if service.reference_field is not None and entry.intent.has_no_id:
        sent = find_text(document, service.reference_field)
        compared.append(("reference", sent, [find_text(part, service.reference_field) for part in parts]))
    for what, sent, found in compared:
        for other in found:
            if sent and other and _fold(other) != _fold(sent):
                return f'naming the {what} "{other[:_MOST_SHOWN]}"'
    return None


def _fold(text: str) -> str:
    # A key may be a structured field's string, in quotation marks (RFC 9651 section 3.3.3).
    return fold_reference(text).strip('"').casefold()


def describe_sent(service: Service, entry: Entry) -> Sent:
    """Return the request of an entry's last attempt, to compare its reply with."""
    intent, noun, pointers = entry.intent, CREATE_TRANSACTION.noun, service.pointers
    body = _read(intent.body)
    pointed = locate(body, noun=noun, pointers=pointers).id
    own = (intent.idempotency_key, intent.reference, entry.request_id, pointed, *find_ids(body, noun=noun))
    return Sent(intent.url, body, frozenset(name.casefold() for name in own if name), pointers, service.is_failed)


def _read(body: str | None) -> JsonValue:
    reply = read_reply((body or "").encode())
    return reply.value if isinstance(reply, Document) else None


def judge_stored(service: Service, entry: Entry) -> Judgement | None:
    """Return the judgement of a create's stored reply by the current profile; None if none is stored."""
    status, reply = entry.settlement.http_status, entry.settlement.reply
    if (
        entry.intent.operation != CREATE_TRANSACTION.name
        or status is None
        or reply is None
        or status not in _DONE_STATUSES
    ):
        return None
    return _judge_answer(CREATE_TRANSACTION, Answer(status, (), reply.encode()), describe_sent(service, entry))
