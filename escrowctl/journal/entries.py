"""What the journal keeps of a write: the intent, its state, and what became of it."""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from escrowctl.contract.money import Money
from escrowctl.contract.operations import RELEASE_TRANSACTION, VERBS
from escrowctl.errors import bad_value
from escrowctl.journal.accounts import NO_ACCOUNT, Account

APPLIED_ON_WORD = "applied, on an operator's word"
"""Detail of the decision that an unknown write was applied."""

RESENT_ON_WORD = "to be sent again, on an operator's word"
"""Detail of the decision before an attempt that an operator asked for while an earlier one was unknown."""


class State(StrEnum):
    """Where a write stands.

        in_flight -> done | refused | unknown | not_sent
        unknown   -> done | not_applied     (a reading showed it, or an operator's word)
        not_sent, not_applied, refused for now -> in_flight   (the next attempt, under the same key)
        unknown   -> in_flight              (a service that deduplicates, or an operator's word)

    An entry in flight whose process is gone reads as unknown, never as not sent.
    """

    IN_FLIGHT = "in_flight"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"
    NOT_APPLIED = "not_applied"


@dataclass(frozen=True, slots=True)
class Intent:
    """A write about to be sent, complete: what is stored here is what goes out.

    Only texts of a webhook's or a foreign call's body that may be secret stand as hashes. `service`
    is the name that its profile gives the service, or its origin; `site` its origin with all of this
    machine's names as one (None: the name is all there is). `likeness` is what makes two writes of
    one operation the same write in this service: the body with numbers normalised for a create, the
    id as the service echoes it for a release.
    """

    operation: str
    service: str
    profile: str
    method: str
    url: str
    body: str | None
    idempotency_key: str
    likeness: str
    resource_id: str | None = None
    money: Money | None = None
    reference: str | None = None
    reason: str | None = None
    despite: tuple[int, ...] = ()
    operator: str = ""
    site: str | None = None
    account: Account = NO_ACCOUNT

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its service: two writes are at one service where they share any of them."""
        return tuple(dict.fromkeys((self.service, self.site or self.service)))

    @property
    def likenesses(self) -> tuple[str, ...]:
        """What it is the same write by: a release by the id as typed too, for an echo may change."""
        typed = (self.resource_id,) if self.is_once_only and self.resource_id is not None else ()
        return tuple(dict.fromkeys((self.likeness, *typed)))

    @property
    def verb(self) -> str:
        """The write in a word or two for a sentence: `create`, `release`, `DELETE call` where it is foreign."""
        return VERBS.get(self.operation, f"{self.method} call")

    @property
    def is_create(self) -> bool:
        """Whether the service names the thing, so that this write cannot be recognised by an id."""
        return self.resource_id is None

    @property
    def is_once_only(self) -> bool:
        """Whether doing it twice is always wrong: a release is; an equal create or update may be meant."""
        return self.operation == RELEASE_TRANSACTION.name

    def is_of_same_id(self, other: "Intent") -> bool:
        """Whether two releases name one id exactly; the guards also compare ids without case and Unicode form."""
        return bool(set(self.likenesses) & set(other.likenesses))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one attempt. `detail` is a sentence; `may_repeat` marks a 425 or 429.

    `verified`: a reading showed it.
    """

    state: State
    detail: str
    http_status: int | None = None
    result_id: str | None = None
    reply: str | None = None
    may_repeat: bool = False
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One write as the journal knows it now. Times are RFC 3339 in UTC.

    `origin` names the journal and entry that it was imported from (None: it was written from here).
    """

    number: int
    intent: Intent
    verdict: Verdict
    attempt: int
    request_id: str
    sent_at: str
    settled_at: str | None = None
    origin: str | None = None
    history: tuple["Event", ...] = field(default=())

    @property
    def name(self) -> str:
        """The entry's name on the line: `j12`."""
        return f"j{self.number}"

    @property
    def state(self) -> State:
        """The state of the last attempt."""
        return self.verdict.state

    @property
    def facts(self) -> dict[str, object]:
        """What a log needs to settle it without the journal; values are JSON's."""
        intent = self.intent
        known: dict[str, object] = {
            "http_status": self.verdict.http_status,
            "request_id": self.request_id,
            "entry": self.name,
            "idempotency_key": intent.idempotency_key,
            "sent_at": self.sent_at,
            "request": {"method": intent.method, "url": intent.url, "body": intent.body},
        }
        return known | ({"reason": intent.reason} if intent.reason else {})

    @property
    def is_open(self) -> bool:
        """Whether the write may have happened, or may yet, without anybody knowing."""
        return self.state in (State.UNKNOWN, State.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an entry's history: what was recorded, and when."""

    at: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries to look at: the newest `limit` of those that match everything given.

    `since` (included) and `until` (not included) are timestamps of sending; `resource_id` is the id
    written to, or the one that was made.
    """

    limit: int
    states: tuple[State, ...] = ()
    profile: str | None = None
    operations: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    reference: str | None = None
    resource_id: str | None = None

    def condition(self) -> tuple[str, tuple[object, ...]]:
        """Return an SQL condition over the journal's entries, and the values bound in it."""
        parts: list[tuple[str, tuple[object, ...]]] = []
        for column, values in (("state", self.states), ("operation", self.operations)):
            parts += [(f"{column} IN ({', '.join('?' * len(values))})", values)] if values else []
        for condition, value in (
            ("profile = ?", self.profile),
            ("sent_at >= ?", self.since),
            ("sent_at < ?", self.until),
            ("reference = ?", self.reference),
        ):
            parts += [(condition, (value,))] if value is not None else []
        if self.resource_id is not None:
            parts.append(("? IN (resource_id, result_id)", (self.resource_id,)))
        conditions = " AND ".join(condition for condition, _ in parts) or "1"
        return conditions, tuple(value for _, values in parts for value in values)


def parse_entry_name(text: str) -> int:
    """Return the number in `j12`; raises EscrowctlError (exit 2) for anything else."""
    if not re.fullmatch(r"j[1-9][0-9]{0,17}", text, re.ASCII):
        raise bad_value(f'"{text}" is not a journal entry: write its name, such as j12.')
    return int(text[1:])
