"""Exchanges that did not do what was asked, as errors: what happened, what was sent, what next."""

from escrowctl.client.exchange import Answer, Exchange, Fault
from escrowctl.client.outcome import REFUSAL_CODES
from escrowctl.client.problem import describe_document, describe_refusal
from escrowctl.config.service import Service
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.contract.reply import Broken
from escrowctl.errors import (
    NOTHING_SENT_NOW,
    ONLY_READ,
    ErrorCode,
    EscrowctlError,
    Hint,
    Hints,
    Outcome,
    command,
    not_sent,
)
from escrowctl.journal.model import Entry, State

_REQUEST_TIMEOUT = 408
_TOO_EARLY = 425
_SERVER_ERROR = 500
_NOT_FOUND = 404


def read_failure(
    service: Service, operation: Operation, exchange: Exchange, *, resource_id: str | None, request_id: str
) -> EscrowctlError:
    """Return why a read brought no record: by its status, or by where the connection failed."""
    facts: dict[str, object] = {"request_id": request_id}
    if exchange.answer is None:
        return _no_answer(service, exchange, facts)
    answer = exchange.answer
    facts["http_status"] = answer.status
    code = _read_code(answer.status)
    return EscrowctlError(
        code,
        f"{_label(operation, resource_id)}: the service answered {describe_refusal(answer)}.",
        hint=refusal_hint(service, answer.status),
        outcome=Outcome.REFUSED if code is not ErrorCode.READ_FAILED else None,
        facts=facts,
    )


def unreadable(
    operation: Operation, answer: Answer, broken: Broken, *, resource_id: str | None, request_id: str
) -> EscrowctlError:
    """Return the failure (10) of a read that was answered with something that is not a document."""
    excerpt = f': "{" ".join(broken.excerpt.split())[:80]}"' if broken.excerpt else ""
    return EscrowctlError(
        ErrorCode.UNREADABLE_REPLY,
        f"{_label(operation, resource_id)}: the service answered {answer.status}, "
        f"but the reply {broken.defect.value}{excerpt}.",
        facts={"request_id": request_id, "http_status": answer.status},
    )


def denied(
    operation: Operation, answer: Answer, document: JsonValue, *, resource_id: str | None, request_id: str
) -> EscrowctlError:
    """Return the failure (10) of a read whose 2xx reply says in its body that it failed."""
    said = describe_document(document)
    return EscrowctlError(
        ErrorCode.READ_FAILED,
        f"{_label(operation, resource_id)}: the service answered {answer.status}, "
        + (f'but says: "{said}".' if said else "but the reply is shaped like an error."),
        hint=Hint("escrowctl api GET, with the same path", "to see the whole reply"),
        facts={"request_id": request_id, "http_status": answer.status},
    )


def cached(
    operation: Operation, answer: Answer, age: str, *, resource_id: str | None, request_id: str
) -> EscrowctlError:
    """Return the failure (10) of a read that decides about a write, and that a cache answered."""
    return EscrowctlError(
        ErrorCode.READ_FAILED,
        f"{_label(operation, resource_id)}: the answer comes from a cache between here and the service (Age: {age}).",
        facts={"request_id": request_id, "http_status": answer.status},
    )


def no_list(operation: Operation, request_id: str) -> EscrowctlError:
    """Return the failure (10) of a list that was answered with JSON in which no list can be found."""
    return EscrowctlError(
        ErrorCode.UNREADABLE_REPLY,
        f"{operation.name.replace('_', ' ')}: the reply is JSON, but no list can be found in it.",
        facts={"request_id": request_id},
    )


def write_failure(service: Service, entry: Entry, code: ErrorCode | None, *, replayed: bool = False) -> EscrowctlError:
    """Return what to say of a write that is not done, from what the journal recorded of it.

    `replayed`: it was sent by an earlier command, nothing by this one.
    """
    verb = entry.intent.verb
    facts = entry.facts
    match entry.state:
        case State.NOT_SENT:
            return not_sent(
                ErrorCode.NO_CONNECTION,
                f"the {verb} was not sent: {entry.settlement.detail}.",
                hint=_connection_hint(service),
                facts=facts,
            )
        case State.REFUSED:
            status = entry.settlement.http_status or 0
            return EscrowctlError(
                code or REFUSAL_CODES.get(status, ErrorCode.REFUSED),
                f"the service refused the {verb}: {entry.settlement.detail}.",
                effect=NOTHING_SENT_NOW if replayed else "",
                hint=_throttled_hint(service) if entry.settlement.may_repeat else refusal_hint(service, status),
                outcome=Outcome.REFUSED,
                facts=facts,
            )
        case _:
            return EscrowctlError(
                ErrorCode.OUTCOME_UNKNOWN,
                f"the {verb} was sent, and {entry.settlement.detail}. {_may_have(entry)}",
                effect=NOTHING_SENT_NOW if replayed else _how_often(entry),
                hint=command(f"journal resolve {entry.name}", "settle it before doing it again"),
                outcome=Outcome.UNKNOWN,
                facts=facts | ({"deduplicates": True} if service.idempotency == "header" else {}),
            )


def _throttled_hint(service: Service) -> Hint:
    unprocessed = "if the service rejects throttled requests unprocessed"
    if service.profile is None:
        return Hint("use a profile with retry_throttled = true", unprocessed)
    return command("config set retry_throttled true", unprocessed)


def refusal_hint(service: Service, status: int) -> Hints:
    """Return the way on after a refusal, where there is one to name."""
    match status:
        case 401:
            return f"the key came from {service.key_source}; is it the one for {service.origin}?"
        case 404 if not service.sandbox:
            return f"if no id is ever found here, the API may be under another prefix than {service.api_prefix or '/'}"
        case 301 | 307 | 308:
            return f"correct the base URL (from {service.url_source}): redirects are not followed"
        case _:
            return ()


def _label(operation: Operation, resource_id: str | None) -> str:
    return " ".join((*operation.name.split("_"), *([resource_id] if resource_id else [])))


def _read_code(status: int) -> ErrorCode:
    if status >= _SERVER_ERROR or status == _REQUEST_TIMEOUT:
        return ErrorCode.READ_FAILED
    return REFUSAL_CODES.get(status, ErrorCode.REFUSED)


def _no_answer(service: Service, exchange: Exchange, facts: dict[str, object]) -> EscrowctlError:
    fault = exchange.fault or Fault.BROKEN_OFF
    detail = f" ({exchange.detail})" if exchange.detail else ""
    if exchange.sent:
        return EscrowctlError(
            ErrorCode.READ_FAILED, f"{service.origin}: {fault.value}{detail}.", effect=ONLY_READ, facts=facts
        )
    return not_sent(
        ErrorCode.NO_CONNECTION,
        f"{service.origin}: {fault.value}{detail}.",
        hint=_connection_hint(service),
        facts=facts,
    )


def _connection_hint(service: Service) -> str:
    return f"the base URL came from {service.url_source}"


def _how_often(entry: Entry) -> str:
    return "It was not sent again." if entry.attempt == 1 else f"It was sent {entry.attempt} times, under one key."


def _may_have(entry: Entry) -> str:
    match entry.intent.operation:
        case CREATE_TRANSACTION.name:
            return "The escrow may exist, or not."
        case CREATE_WEBHOOK.name:
            return "The endpoint may be registered, or not."
        case RELEASE_TRANSACTION.name:
            return f"{entry.intent.resource_id} may be released, or not."
        case UPDATE_TRANSACTION.name:
            return f"{entry.intent.resource_id} may be updated, or not."
        case _:
            return "It may have been carried out, or not."
