"""What a write's exchange proves: not sent, refused, unknown, or done.

The table is by evidence and status, never by exception type: RFC 9110 section 9.2.2 forbids to
repeat a method that is not idempotent without knowing that it was not applied, and this service
promises no deduplication (interface.md: not shown). What is not listed is unknown.
"""

from dataclasses import dataclass, replace

from escrowctl.client.exchange import Answer, Exchange, Fault
from escrowctl.client.problem import describe_refusal
from escrowctl.contract.operations import UPDATE_TRANSACTION, Operation
from escrowctl.contract.record import looks_like_error, unwrap
from escrowctl.contract.reply import Broken, Defect, Document
from escrowctl.errors import ErrorCode, Sending

_REFUSED_OTHERWISE = frozenset({400, 402, 404, 405, 406, *range(410, 416), 417, 421, 422, 424, 428, 431, 451, 501})
_REDIRECTS_THAT_KEEP_THE_METHOD = frozenset({301, 307, 308})
_REFUSED_FOR_NOW = frozenset({425, 429})
_DONE = frozenset({200, 201, 202})
_NO_CONTENT = 204

REFUSAL_CODES: dict[int, ErrorCode] = {
    401: ErrorCode.NOT_AUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    409: ErrorCode.CONFLICT,
    425: ErrorCode.RATE_LIMITED,
    429: ErrorCode.RATE_LIMITED,
    **dict.fromkeys(_REDIRECTS_THAT_KEEP_THE_METHOD, ErrorCode.REDIRECTED),
}
"""Status -> the finer word for it; other refusals are `refused`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attempt's class, the sentence that says why, and for a refusal its code.

    `may_repeat`: a 425 or 429, which comes before processing. `answered`: a status line arrived, so
    that reading the resource back may settle an unknown.
    """

    sending: Sending
    detail: str
    code: ErrorCode | None = None
    may_repeat: bool = False
    answered: bool = False

    def after_unknown(self) -> "Outcome":
        """Return what an attempt's outcome says of a write whose earlier attempt may have been applied.

        Only that it is done settles that: a service that refuses the second may have done the first.
        """
        if self.sending is Sending.DONE:
            return self
        if self.sending is Sending.UNKNOWN:
            return replace(self, code=None)
        what = "was not sent" if self.sending is Sending.NOT_SENT else "was refused"
        detail = f"no attempt was answered with what became of it; the last one {what}: {self.detail}"
        return Outcome(Sending.UNKNOWN, detail, answered=self.answered)


def judge_write(operation: Operation, exchange: Exchange) -> Outcome:
    """Return what the exchange proves about a write.

    A 409 says that the service knows the write: a proxy between may have sent it before, and that one
    may have been applied. Only an update's says no more than that the record is in another state.
    """
    if exchange.answer is not None:
        outcome = _judge_answer(operation, exchange.answer)
        if outcome.code is ErrorCode.CONFLICT and operation.name != UPDATE_TRANSACTION.name:
            detail = f"the service answered {outcome.detail}: it may have received it before"
            return Outcome(Sending.UNKNOWN, detail, ErrorCode.CONFLICT, answered=True)
        return outcome
    fault = exchange.fault or Fault.BROKEN_OFF
    detail = f"{fault.value} ({exchange.detail})" if exchange.detail else fault.value
    if not exchange.sent:
        return Outcome(Sending.NOT_SENT, detail, ErrorCode.NO_CONNECTION)
    return Outcome(Sending.UNKNOWN, detail)


def _judge_answer(operation: Operation, answer: Answer) -> Outcome:
    status = answer.status
    if status in _DONE or status == _NO_CONTENT:
        return _judge_success(operation, answer)
    code = REFUSAL_CODES.get(status)
    if code is not None or status in _REFUSED_OTHERWISE:
        return Outcome(
            Sending.REFUSED,
            describe_refusal(answer),
            code or ErrorCode.REFUSED,
            may_repeat=status in _REFUSED_FOR_NOW,
            answered=True,
        )
    return Outcome(Sending.UNKNOWN, f"the service answered {describe_refusal(answer)}", answered=True)


def _judge_success(operation: Operation, answer: Answer) -> Outcome:
    """A 2xx is done only if its body says nothing else: a create must name the thing it made."""
    reply = answer.read()
    creates = operation.makes_record
    if isinstance(reply, Broken):
        if reply.defect is Defect.EMPTY and not creates:
            return Outcome(Sending.DONE, f"{answer.status}, no reply body", answered=True)
        return _unreadable(answer, reply.defect.value)
    record = unwrap(reply.value, noun=operation.noun)
    if any(looks_like_error(found, noun=operation.noun) for found in (reply.value, record)):
        return _unreadable(answer, "is shaped like an error")
    if creates and not isinstance(record, dict):
        return _unreadable(answer, "is not a record")
    return Outcome(Sending.DONE, str(answer.status), answered=True)


def _unreadable(answer: Answer, why: str) -> Outcome:
    return Outcome(Sending.UNKNOWN, f"the service answered {answer.status}, but the reply {why}", answered=True)


def document_of(answer: Answer | None) -> Document | None:
    """Return the reply's document where there is one."""
    reply = answer.read() if answer else None
    return reply if isinstance(reply, Document) else None
