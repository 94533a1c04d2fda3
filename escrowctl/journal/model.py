"""The journal's model of a write.

intent      the complete write that is to be sent
attempt     one sending of it; all attempts of an entry have one idempotency key
outcome     the result that an attempt's exchange proves: not sent, refused, unknown or done
settlement  the recorded outcome of the last attempt, with its reply and the reason
decision    an operator's record about an unknown outcome
state       the entry's current state: in flight, or as its settlement says
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
"""HTTP statuses that refuse the API key, not the write: the write is sent again under its idempotency key."""

DECIDED_RESEND = "to be sent again, on an operator's word"
"""Detail of the decision before an attempt that an operator asked for; stored and compared like `DECIDED_APPLIED`."""

LOST_IN_FLIGHT = "the process ended without recording an outcome"
WHILE_EXPORTED = "it was in flight when its journal was exported"
"""Details of writes in flight that count as unknown: it is not known whether a byte was sent. The second detail is
stored since format 1."""

Caps = Mapping[str, Decimal]
"""Currency -> the maximum sum of one operation's writes in a UTC day. Empty: no caps."""

NO_CAPS: Caps = MappingProxyType({})


class State(StrEnum):
    """The state of a write, as far as the journal knows it.

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
"""Shown instead of "done" if the write was accepted but not confirmed, or was not done as requested."""

OPEN_STATES = (State.UNKNOWN, State.IN_FLIGHT)
"""The write may have happened, or may yet happen."""

POSSIBLE_STATES = (State.DONE, *OPEN_STATES)
"""The write happened, or may have happened."""


class Intent(NamedTuple):
    """A complete write that is about to be sent. It is sent as stored here, with one exception.

    Texts that may be secret in the body of a webhook or a raw call are stored only as hashes. `service` is
    the service's name in the profile, or its origin. `site` is its origin, with all names of this machine
    as one (None: only the name is known). Two writes of one operation with the same `fingerprint` are
    identical to this service: for a create it is the body with normalised numbers, for a release the id as
    the service echoes it. `allowed_duplicates` are the entries that it may repeat. `batch` and `line` name
    its row in a batch; `columns` (a JSON object) has the other values of that row. `run_key` is the key of
    the batch's run ("": the run has none; None: not known, or not a row of a batch).
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
        """All fingerprints that find it. A release also has the id as typed, because the echo may change."""
        typed = (self.resource_id,) if self.is_once_only and self.resource_id is not None else ()
        return tuple(dict.fromkeys((self.fingerprint, *typed)))

    @property
    def verb(self) -> str:
        """The write in a word or two for a sentence: `create`, `release`, `DELETE call` for a raw one."""
        return BY_NAME[self.operation].verb if self.operation in BY_NAME else f"{self.method} call"

    @property
    def done(self) -> str:
        """The participle after "it was": `created`, `released`, `called` for a raw call."""
        return BY_NAME[self.operation].done if self.operation in BY_NAME else "called"

    @property
    def has_no_id(self) -> bool:
        """Whether the request names no id: a create, a webhook's registration, a raw call without one."""
        return self.resource_id is None

    @property
    def is_once_only(self) -> bool:
        """Whether doing it twice is always wrong, as for a release. An identical create or update may be intended."""
        return self.operation in BY_NAME and BY_NAME[self.operation].once_only

    def is_known_as(self, names: Iterable[str]) -> bool:
        """Whether its service has one of these names."""
        return not set(self.names).isdisjoint(names)

    def shares_service(self, other: "Intent") -> bool:
        """Whether both are at one service, under any of its names."""
        return self.is_known_as(other.names)

    def may_share_account(self, earlier: "Intent") -> bool:
        """Whether both are at one service and may belong to one account there."""
        return self.shares_service(earlier) and not self.account.is_other(earlier.account)

    def has_same_id(self, other: "Intent") -> bool:
        """Whether both have exactly the same id. The guards also compare ids without case and Unicode form."""
        return bool(set(self.fingerprints) & set(other.fingerprints))


class Settlement(NamedTuple):
    """The result of one attempt. `outcome` None: still in flight. `detail` is a sentence.

    `may_repeat`: the reply was 425 or 429. `verified`: the service reported it as done. `not_applied`: an
    operator decided that it was not applied; this overrides `outcome`. `remark`: how a write that is done
    differs from the request.
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

    @property
    def described(self) -> str:
        """The state with its detail and the id of the created record, for messages."""
        made = f", id {self.result_id}" if self.result_id else ""
        return f"{self.state.value.replace('_', ' ')} ({self.detail}{made})"

    def is_verified_as(self, other: "Settlement") -> bool:
        """Whether both are verified, with the same result id."""
        return self.verified and other.verified and self.result_id == other.result_id


UNSETTLED = Settlement(None, "")
"""The settlement of an attempt in flight."""


class Event(NamedTuple):
    """One line of an entry's history: a record and its time."""

    at: str
    state: State
    detail: str


class Entry(NamedTuple):
    """One write as the journal knows it now. Times are RFC 3339 in UTC.

    `origin` names the journal and entry that it was imported from (None: it was written here).
    `requests` are the request ids of all its attempts. `resends` counts the attempts that an operator
    requested while an earlier one was unknown. `counted_on` is the UTC day on which caps count it: the day
    of the journal's latest date when it was last sent, so that setting the clock back frees nothing.
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
        """The state of the last attempt."""
        return self.settlement.state

    @property
    def shown_state(self) -> str:
        """The state as lists and sums show it: `UNCONFIRMED` instead of "done" if `is_unconfirmed`."""
        return UNCONFIRMED if self.is_unconfirmed else self.state.value

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is done, but not as requested, or is once-only and not confirmed by a reading or an operator."""
        settlement = self.settlement
        is_confirmed = settlement.verified or settlement.detail == DECIDED_APPLIED or not self.intent.is_once_only
        return self.state is State.DONE and (settlement.remark is not None or not is_confirmed)

    @property
    def record_id(self) -> str | None:
        """The id of the record that it wrote to or created, if known."""
        return self.intent.resource_id or self.settlement.result_id

    @property
    def facts(self) -> dict[str, object]:
        """The facts that a log needs to settle it without the journal, as JSON values."""
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
        """Whether the outcome is not known: the write may have happened, or may still happen."""
        return self.state in OPEN_STATES


def settled_by_reading(entry: Entry, detail: str) -> Settlement:
    """Return the settlement of a write that a reading showed to be done."""
    known = entry.settlement
    # A reply from before the write was known to be done does not show its result.
    reply = known.reply if entry.state is State.DONE else None
    return known._replace(
        outcome=Outcome.DONE, detail=detail, reply=reply, verified=True, not_applied=False, remark=None
    )


class OperatorDecision(NamedTuple):
    """The operator who decided an entry's outcome, and the reason."""

    operator: str
    reason: str


class PlanRow(NamedTuple):
    """A row of a batch that is not sent yet; `content` is the batch's own text."""

    batch: str
    row: int
    content: str


class Begin(NamedTuple):
    """A write to record before it is sent.

    `caps` limit it. `resend_throttled`: it is sent again if an earlier attempt got a 425 or 429. `planned`
    is the batch and row of the plan that it comes from. `again` is the entry whose next attempt this is,
    whatever the outcome of the last one. That needs a service that deduplicates, or an operator's
    `decision`. The intent is then the entry's own, with the current account.
    """

    intent: Intent
    request_id: str
    caps: Caps = NO_CAPS
    resend_throttled: bool = False
    planned: tuple[str, int] | None = None
    again: "Entry | None" = None
    decision: "OperatorDecision | None" = None


class Selection(NamedTuple):
    """The newest `limit` entries that match every given field.

    `since` (included) and `until` (not included) are timestamps of sending. `resource_id` is an id that was
    written to or created; `result_id` only a created id. `origin` is the journal and entry of an import.
    `batch` is a batch of this journal. `fingerprint` needs `since`, and finds no batch rows that have a
    reference (see `fold`). `unnamed`: only entries without a reference.
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
    """Return the number in `j12`. Raises EscrowctlError `ErrorCode.BAD_VALUE` for any other text."""
    if not re.fullmatch(r"j[1-9][0-9]{0,17}", text, re.ASCII):
        raise bad_value(f'"{text}" is not a journal entry: write its name, such as j12.')
    return int(text[1:])
