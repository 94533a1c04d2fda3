"""What the journal knows of a write.

intent      the write that is to be sent, complete
attempt     one sending of it; all attempts of an entry have one idempotency key
outcome     what an attempt's exchange proves: not sent, refused, unknown or done
settlement  the recorded outcome of the last attempt, with its reply and why
decision    what an operator recorded about an unknown outcome
state       what is known of the entry now: in flight, or by its settlement
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.money import Money
from escrowctl.contract.operations import BY_NAME
from escrowctl.errors import Outcome, bad_value
from escrowctl.journal.accounts import NO_ACCOUNT, Account

DECIDED_APPLIED = "applied, on an operator's word"
"""Detail of the decision that an unknown write was applied; stored since format 1 and compared, so never reworded."""

KEY_REFUSED = (401, 403)
"""Refusals of the API key, which say nothing about the write: it is sent again under its idempotency key."""

DECIDED_RESEND = "to be sent again, on an operator's word"
"""Detail of the decision before an attempt that an operator asked for; stored and compared like `DECIDED_APPLIED`."""

LOST_IN_FLIGHT = "the process ended without recording an outcome"
WHILE_EXPORTED = "it was in flight when its journal was exported"
"""Details of writes in flight that count as unknown: of these it is not known whether a byte was sent. The second is
stored since format 1."""

Caps = Mapping[str, Decimal]
"""Currency -> the most that writes of one operation may add up to in a UTC day. Empty: no caps."""

NO_CAPS: Caps = MappingProxyType({})


class State(StrEnum):
    """What is known of a write.

        in_flight -> done | refused | unknown | not_sent
        unknown   -> done | not_applied     (the service reported it, or an operator decided)
        not_sent, not_applied, refused for now -> in_flight   (the next attempt, under the same key)
        unknown   -> in_flight              (a service that deduplicates, or an operator's decision)

    An entry in flight whose process has ended counts as unknown, never as not sent.
    """

    IN_FLIGHT = "in_flight"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"
    NOT_APPLIED = "not_applied"


UNCONFIRMED = "unconfirmed"
"""Shown in the place of "done" where what was done is not known to be what was asked for."""

OPEN_STATES = (State.UNKNOWN, State.IN_FLIGHT)
"""The write may have happened, or may yet happen."""

POSSIBLE_STATES = (State.DONE, *OPEN_STATES)
"""The write happened, or may have happened."""


class Intent(NamedTuple):
    """A write about to be sent, complete: what is stored here is what goes out.

    Texts of a webhook's or a raw call's body that may be secret are stored as hashes only. `service`
    is the name that its profile gives the service, or its origin; `site` its origin with all of this
    machine's names as one (None: only the name is known). Two writes of one operation with one
    `fingerprint` are identical to this service: the body with numbers normalised for a create, the
    id as the service echoes it for a release. `allowed_duplicates` are the entries that it may repeat.
    `batch` and `line` say which row of which batch it is, `columns` (a JSON object) what else the row holds.
    `run_key` is that of the batch's run ("": the run has none; None: not known, or no row of a batch).
    """

    operation: str
    service: str
    profile: str
    method: str
    url: str
    body: str | None
    idempotency_key: str
    fingerprint: str
    resource_id: str | None = None
    money: Money | None = None
    reference: str | None = None
    reason: str | None = None
    allowed_duplicates: tuple[int, ...] = ()
    operator: str = ""
    site: str | None = None
    account: Account = NO_ACCOUNT
    batch: str | None = None
    line: int | None = None
    columns: str | None = None
    run_key: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its service."""
        return tuple(dict.fromkeys((self.service, self.site or self.service)))

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Every fingerprint that it is found by: a release also by the id as typed, for an echo may change."""
        typed = (self.resource_id,) if self.is_once_only and self.resource_id is not None else ()
        return tuple(dict.fromkeys((self.fingerprint, *typed)))

    @property
    def verb(self) -> str:
        """The write in a word or two for a sentence: `create`, `release`, `DELETE call` for a raw one."""
        return BY_NAME[self.operation].verb if self.operation in BY_NAME else f"{self.method} call"

    @property
    def done(self) -> str:
        """What completes "it was ...": `created`, `released`, `called` for a raw call."""
        return BY_NAME[self.operation].done if self.operation in BY_NAME else "called"

    @property
    def has_no_id(self) -> bool:
        """Whether the request names no id: a create, a webhook's registration, a raw call without one."""
        return self.resource_id is None

    @property
    def is_once_only(self) -> bool:
        """Whether doing it twice is always wrong: a release is; an identical create or update may be meant."""
        return self.operation in BY_NAME and BY_NAME[self.operation].once_only

    def is_known_as(self, names: Iterable[str]) -> bool:
        """Whether its service has one of these names."""
        return not set(self.names).isdisjoint(names)

    def shares_service(self, other: "Intent") -> bool:
        """Whether both are at one service, under any of its names."""
        return self.is_known_as(other.names)

    def may_share_account(self, earlier: "Intent") -> bool:
        """Whether both are at one service and not certainly of two accounts there."""
        return self.shares_service(earlier) and not self.account.is_other(earlier.account)

    def has_same_id(self, other: "Intent") -> bool:
        """Whether both name one id exactly; the guards also compare ids without case and Unicode form."""
        return bool(set(self.fingerprints) & set(other.fingerprints))


class Settlement(NamedTuple):
    """What became of one attempt; `outcome` None: nothing yet. `detail` is a sentence.

    `may_repeat` marks a 425 or 429. `verified`: the service reported it as done. `not_applied`: an operator
    decided that it was not applied; this overrides `outcome`. `remark` says in what a write that is done is
    not what was asked for.
    """

    outcome: Outcome | None
    detail: str
    http_status: int | None = None
    result_id: str | None = None
    reply: str | None = None
    may_repeat: bool = False
    verified: bool = False
    not_applied: bool = False
    remark: str | None = None

    @property
    def state(self) -> State:
        """The state of an entry with this settlement."""
        if self.not_applied:
            return State.NOT_APPLIED
        return State.IN_FLIGHT if self.outcome is None else State(self.outcome.value)

    def is_verified_as(self, other: "Settlement") -> bool:
        """Whether readings showed both, and the same id."""
        return self.verified and other.verified and self.result_id == other.result_id


UNSETTLED = Settlement(None, "")
"""The settlement of an attempt in flight."""


class Event(NamedTuple):
    """One line of an entry's history: what was recorded, and when."""

    at: str
    state: State
    detail: str


class Entry(NamedTuple):
    """One write as the journal knows it now. Times are RFC 3339 in UTC.

    `origin` names the journal and entry that it was imported from (None: it was written here).
    `requests` are the request ids of all its attempts; `resends` counts those that an operator asked
    for while an earlier one was unknown. `counted_on` is the UTC day on which caps count it: that of
    the journal's latest date when it was last sent, so that a clock set back frees nothing.
    """

    number: int
    intent: Intent
    settlement: Settlement
    attempt: int
    request_id: str
    sent_at: str
    settled_at: str | None = None
    origin: str | None = None
    history: tuple[Event, ...] = ()
    requests: frozenset[str] = frozenset()
    resends: int = 0
    counted_on: str = ""

    @property
    def name(self) -> str:
        """The entry's name on the command line: `j12`."""
        return f"j{self.number}"

    @property
    def state(self) -> State:
        """What is known of the last attempt."""
        return self.settlement.state

    @property
    def shown_state(self) -> str:
        """The state as lists and sums have it: one that is done may be unconfirmed."""
        return UNCONFIRMED if self.is_unconfirmed else self.state.value

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is done, but otherwise than asked, or accepted while no reading or operator confirmed it."""
        settlement = self.settlement
        is_confirmed = settlement.verified or settlement.detail == DECIDED_APPLIED or not self.intent.is_once_only
        return self.state is State.DONE and (settlement.remark is not None or not is_confirmed)

    @property
    def record_id(self) -> str | None:
        """The id of the record that it wrote to or created, where it is known."""
        return self.intent.resource_id or self.settlement.result_id

    @property
    def facts(self) -> dict[str, object]:
        """What a log needs to settle it without the journal; values are JSON's."""
        intent = self.intent
        known: dict[str, object] = {
            "http_status": self.settlement.http_status,
            "request_id": self.request_id,
            "entry": self.name,
            "idempotency_key": intent.idempotency_key,
            "sent_at": self.sent_at,
            "request": {"method": intent.method, "url": intent.url, "body": intent.body},
        }
        more = {"id": self.record_id, "reason": intent.reason}
        return known | {name: value for name, value in more.items() if value}

    @property
    def is_open(self) -> bool:
        """Whether the write may have happened, or may yet, without anybody knowing."""
        return self.state in OPEN_STATES


def settled_by_reading(entry: Entry, detail: str) -> Settlement:
    """Return the settlement of a write that a reading showed to be done."""
    known = entry.settlement
    # What was answered while it was unknown is no record of what was done.
    reply = known.reply if entry.state is State.DONE else None
    return known._replace(
        outcome=Outcome.DONE, detail=detail, reply=reply, verified=True, not_applied=False, remark=None
    )


class OperatorDecision(NamedTuple):
    """Who decided what became of an entry, and why."""

    operator: str
    reason: str


class PlanRow(NamedTuple):
    """A row of a batch that is not sent yet; `content` is the batch's own text."""

    batch: str
    row: int
    content: str


class Begin(NamedTuple):
    """A write to record before it is sent.

    `caps` limit it; `resend_throttled`: an earlier attempt that was answered with 425 or 429 is sent
    again. `planned` is the batch and row of the plan that this write is taken from. `again` is the entry
    whose next attempt this is, whatever became of the last one: a service that deduplicates, or an
    operator's `decision`, allows it; the intent is then the entry's own, with the account of now.
    """

    intent: Intent
    request_id: str
    caps: Caps = NO_CAPS
    resend_throttled: bool = False
    planned: tuple[str, int] | None = None
    again: "Entry | None" = None
    decision: "OperatorDecision | None" = None


class Begun(NamedTuple):
    """The answer to `Begin`: an entry to send now, or (`replayed`) one that was sent before."""

    entry: Entry
    replayed: bool


class Selection(NamedTuple):
    """Which entries to look at: the newest `limit` of those that match everything given.

    `since` (included) and `until` (not included) are timestamps of sending; `resource_id` is the id
    written to, or the one that was created, `result_id` only the latter. `origin` is where an entry
    was imported from; `batch` is one of this journal's own. `fingerprint` needs `since`; rows of a batch
    with a reference have none, see `fold`. `unnamed`: only those without a reference.
    """

    limit: int
    states: tuple[State, ...] = ()
    profile: str | None = None
    operations: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    reference: str | None = None
    resource_id: str | None = None
    result_id: str | None = None
    origin: str | None = None
    batch: str | None = None
    fingerprint: str | None = None
    unnamed: bool = False


def parse_entry_name(text: str) -> int:
    """Return the number in `j12`; raises EscrowctlError (`ErrorCode.BAD_VALUE`) for anything else."""
    if not re.fullmatch(r"j[1-9][0-9]{0,17}", text, re.ASCII):
        raise bad_value(f'"{text}" is not a journal entry: write its name, such as j12.')
    return int(text[1:])
