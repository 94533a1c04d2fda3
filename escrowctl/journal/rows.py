"""Entries as rows: how a record changes one, what seals it, and under which tokens it stands guard."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.journal.accounts import Account
from escrowctl.journal.chain import Kind, canonical
from escrowctl.journal.entries import Entry, Event, Intent, State, Verdict

Columns = dict[str, Any]
"""An entry's row without its number and seal: text, integer or None by column name."""

MAY_HAVE_HAPPENED = "state IN ('done', 'unknown', 'in_flight')"
"""As SQL: the states of a write that happened, or may have."""

_OPEN = (State.UNKNOWN, State.IN_FLIGHT)
_NO_VERDICT: Columns = {
    "state": State.IN_FLIGHT.value,
    "detail": "",
    "http_status": None,
    "result_id": None,
    "reply": None,
    "may_repeat": 0,
    "verified": 0,
    "settled_at": None,
}
_ADDED_LATER: Columns = {"origin": None, "site": None, "account": None, "key_fingerprint": None}
"""Columns that records of earlier formats do not have."""

_OF_VERDICT = ("state", "detail", "http_status", "result_id", "reply", "may_repeat", "verified")


def apply(columns: Columns, kind: str, at: str, facts: Mapping[str, Any]) -> Columns:
    """Return the row that a record makes of an entry's row (empty for a new entry)."""
    match kind:
        case Kind.INTENT:
            return {**_ADDED_LATER, **columns, **facts, "sent_at": at, **_NO_VERDICT}
        case Kind.IMPORT:
            return {**_ADDED_LATER, **facts}
        case _:
            # Records of format 1 do not say whether a reading showed it.
            said = {"verified": 0, **facts}
            return columns | {name: said[name] for name in _OF_VERDICT} | {"settled_at": at}


def seal_of(number: int, columns: Columns) -> str:
    """Return SHA-256 over an entry's number and every column, as hex."""
    return hashlib.sha256(canonical({"number": number, **columns}).encode()).hexdigest()


def facts_of_intent(intent: Intent, *, attempt: int, request_id: str) -> Columns:
    """Return what a record of an intent holds."""
    account = intent.account.of_entry
    return {
        "operation": intent.operation,
        "service": intent.service,
        "site": intent.site,
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
        "account": account.name,
        "key_fingerprint": account.fingerprint,
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
        "verified": int(verdict.verified),
    }


def entry_of(number: int, columns: Mapping[str, Any], history: tuple[Event, ...] = ()) -> Entry:
    """Return a row as the entry it stands for."""
    row = columns
    return Entry(
        number=number,
        intent=Intent(
            operation=row["operation"],
            service=row["service"],
            site=row["site"],
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
            account=Account(row["account"], row["key_fingerprint"]),
        ),
        verdict=Verdict(
            State(row["state"]),
            row["detail"],
            row["http_status"],
            row["result_id"],
            row["reply"],
            bool(row["may_repeat"]),
            bool(row["verified"]),
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

    Its idempotency key always stands. Its likeness stands while it is open, and for ever for a release
    that is done: an equal create or update may be meant once the first is known. A reference stands
    for what happened or may have.
    """
    state = State(columns["state"])
    names = {columns["service"], columns["site"] or columns["service"]}
    tokens = key_tokens(names, columns["idempotency_key"])
    is_release = columns["operation"] == RELEASE_TRANSACTION.name
    if state in _OPEN or (state is State.DONE and is_release):
        likenesses = {columns["likeness"], columns["resource_id"]} if is_release else {columns["likeness"]}
        tokens |= likeness_tokens(names, columns["operation"], likenesses)
    if columns["reference"] is not None and (state in _OPEN or state is State.DONE):
        tokens |= reference_tokens(names, columns["reference"])
    return tokens


def key_tokens(names: Iterable[str], idempotency_key: str) -> frozenset[int]:
    """Return the tokens of an idempotency key at a service, one for each of its names."""
    return frozenset(_token("key", name, idempotency_key) for name in names)


def likeness_tokens(names: Iterable[str], operation: str, likenesses: Iterable[str]) -> frozenset[int]:
    """Return the tokens of a write that is the same write: one for each name of its service and of itself.

    Ids that differ only in case or Unicode form share a token.
    """
    is_release = operation == RELEASE_TRANSACTION.name
    given = [fold_id(likeness) if is_release else likeness for likeness in likenesses]
    return frozenset(_token("likeness", name, operation, likeness) for name in names for likeness in given)


def reference_tokens(names: Iterable[str], reference: str) -> frozenset[int]:
    """Return the tokens of an operator's reference at a service; references that look alike share them."""
    return frozenset(_token("reference", name, fold_reference(reference)) for name in names)


def _token(*words: str) -> int:
    # 63 bits: SQLite's integers are signed.
    return int.from_bytes(hashlib.sha256(json.dumps(words).encode()).digest()[:8], "big") >> 1
