"""Entries as rows: how a record changes one, what seals it, and under which tokens it stands guard."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from escrowctl.contract.money import Money
from escrowctl.contract.number import Number
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.journal.chain import Kind, canonical
from escrowctl.journal.entries import Entry, Event, Intent, State, Verdict

Columns = dict[str, Any]
"""An entry's row without its number and seal: text, integer or None by column name."""

MAY_HAVE_HAPPENED = "state IN ('done', 'unknown', 'in_flight')"
"""As SQL: the states of a write that happened, or may have."""

STANDS_BY_LIKENESS = (
    f"(state IN ('unknown', 'in_flight') OR state = 'done' AND operation = '{RELEASE_TRANSACTION.name}')"
)
"""As SQL: what stands against an equal write. An equal create or update may be meant once the first is known."""

_OPEN = (State.UNKNOWN, State.IN_FLIGHT)
_NO_VERDICT: Columns = {
    "state": State.IN_FLIGHT.value,
    "detail": "",
    "http_status": None,
    "result_id": None,
    "reply": None,
    "may_repeat": 0,
    "settled_at": None,
}
_OF_VERDICT = ("state", "detail", "http_status", "result_id", "reply", "may_repeat")


def apply(columns: Columns, kind: str, at: str, facts: Mapping[str, Any]) -> Columns:
    """Return the row that a record makes of an entry's row (empty for a new entry)."""
    match kind:
        case Kind.INTENT:
            return {"origin": None, **columns, **facts, "sent_at": at, **_NO_VERDICT}
        case Kind.IMPORT:
            return {**facts}
        case _:
            return columns | {name: facts[name] for name in _OF_VERDICT} | {"settled_at": at}


def seal_of(number: int, columns: Columns) -> str:
    """Return SHA-256 over an entry's number and every column, as hex."""
    return hashlib.sha256(canonical({"number": number, **columns}).encode()).hexdigest()


def facts_of_intent(intent: Intent, *, attempt: int, request_id: str) -> Columns:
    """Return what a record of an intent holds."""
    return {
        "operation": intent.operation,
        "service": intent.service,
        "profile": intent.profile,
        "method": intent.method,
        "url": intent.url,
        "body": intent.body,
        "idempotency_key": intent.idempotency_key,
        "likeness": intent.likeness,
        "resource_id": intent.resource_id,
        "amount": intent.money.amount.text if intent.money else None,
        "currency": intent.money.currency if intent.money else None,
        "reference": intent.reference,
        "reason": intent.reason,
        "despite": ",".join(str(number) for number in intent.despite),
        "operator": intent.operator,
        "attempt": attempt,
        "request_id": request_id,
    }


def facts_of_verdict(verdict: Verdict) -> Columns:
    """Return what a record of a verdict holds."""
    return {
        "state": verdict.state.value,
        "detail": verdict.detail,
        "http_status": verdict.http_status,
        "result_id": verdict.result_id,
        "reply": verdict.reply,
        "may_repeat": int(verdict.may_repeat),
    }


def entry_of(number: int, columns: Mapping[str, Any], history: tuple[Event, ...] = ()) -> Entry:
    """Return a row as the entry it stands for."""
    row = columns
    return Entry(
        number=number,
        intent=Intent(
            operation=row["operation"],
            service=row["service"],
            profile=row["profile"],
            method=row["method"],
            url=row["url"],
            body=row["body"],
            idempotency_key=row["idempotency_key"],
            likeness=row["likeness"],
            resource_id=row["resource_id"],
            money=Money(Number(row["amount"]), row["currency"]) if row["amount"] is not None else None,
            reference=row["reference"],
            reason=row["reason"],
            despite=tuple(int(one) for one in row["despite"].split(",") if one),
            operator=row["operator"],
        ),
        verdict=Verdict(
            State(row["state"]),
            row["detail"],
            row["http_status"],
            row["result_id"],
            row["reply"],
            bool(row["may_repeat"]),
        ),
        attempt=row["attempt"],
        request_id=row["request_id"],
        sent_at=row["sent_at"],
        settled_at=row["settled_at"],
        origin=row["origin"],
        history=history,
    )


def event_of(kind: str, at: str, facts: Mapping[str, Any]) -> Event:
    """Return a record as a line of its entry's history."""
    match kind:
        case Kind.INTENT:
            return Event(at, State.IN_FLIGHT, f"attempt {facts['attempt']}")
        case Kind.IMPORT:
            return Event(at, State(facts["state"]), f"imported: {facts['origin']}")
        case Kind.DECISION:
            return Event(at, State(facts["state"]), f"{facts['detail']} ({facts['operator']}: {facts['reason']})")
        case _:
            return Event(at, State(facts["state"]), facts["detail"])


def tokens_of(columns: Mapping[str, Any]) -> frozenset[int]:
    """Return the tokens under which an entry stands against new writes, as its row is now.

    The same conditions as `STANDS_BY_LIKENESS` and `MAY_HAVE_HAPPENED`, so that the two ways to an
    entry can be held against each other.
    """
    service, state = columns["service"], State(columns["state"])
    tokens = {key_token(service, columns["idempotency_key"])}
    if state in _OPEN or (state is State.DONE and columns["operation"] == RELEASE_TRANSACTION.name):
        tokens.add(likeness_token(service, columns["operation"], columns["likeness"]))
    if columns["reference"] is not None and (state in _OPEN or state is State.DONE):
        tokens.add(reference_token(service, columns["reference"]))
    return frozenset(tokens)


def key_token(service: str, idempotency_key: str) -> int:
    """Return the token of an idempotency key at a service."""
    return _token("key", service, idempotency_key)


def likeness_token(service: str, operation: str, likeness: str) -> int:
    """Return the token of a write that is the same write."""
    return _token("likeness", service, operation, likeness)


def reference_token(service: str, reference: str) -> int:
    """Return the token of an operator's reference at a service."""
    return _token("reference", service, reference)


def _token(*words: str) -> int:
    # 63 bits: SQLite's integers are signed. Two that collide are told apart by their rows.
    return int.from_bytes(hashlib.sha256(json.dumps(words).encode()).digest()[:8], "big") >> 1
