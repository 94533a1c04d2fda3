"""The journal's model of a write.

entry       one write in the journal, with all its attempts
intent      the complete write that is to be sent
attempt     one sending of the intent; all attempts of an entry have the same idempotency key
outcome     the proven result of an attempt: not sent, refused, unknown or done
settlement  the record of an attempt's outcome, with the service's reply
decision    an operator's record that settles an unknown outcome, or asks for another attempt
account     the account that sends the write; an earlier write counts as done only for the account that sent it
state       the entry's current state: in flight until there is a settlement, then the state in the settlement
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import OPERATIONS_BY_NAME
from escrowctl.errors import Outcome, bad_value
from escrowctl.journal.account import NO_ACCOUNT, Account

DECIDED_APPLIED = "applied, on an operator's word"
"""The stored detail of an operator's decision that an unknown write was applied. Never reword it."""

KEY_REFUSED_STATUSES = (401, 403)
"""HTTP statuses that refuse the API key, not the write: it may be sent again under its idempotency key."""

DECIDED_RESEND = "to be sent again, on an operator's word"
"""The stored detail of an operator's decision to send an unknown write again. Never reword it."""

LOST_IN_FLIGHT = "the process ended without recording an outcome"
EXPORTED_IN_FLIGHT = "it was in flight when its journal was exported"
"""Details of writes that were in flight and now count as unknown: perhaps they were sent, perhaps not.
`EXPORTED_IN_FLIGHT` is stored: never reword it."""

RECORDED_LATER = "this journal did not send it: an operator recorded it"
"""The stored detail of a write that was perhaps sent before, without this journal. Never reword it."""

Caps = Mapping[str, Decimal]
"""Currency -> the maximum sum of one operation's writes in a UTC day. Empty: no caps."""

NO_CAPS: Caps = MappingProxyType({})


class State(StrEnum):
    """The state of a write, as far as the journal knows it.

        in_flight -> done | refused | unknown | not_sent
        unknown   -> done | not_applied     (the service reported it, or an operator decided)
        not_sent, not_applied, refused (401, 403, 425, 429) -> in_flight   (next attempt, same idempotency key)
        unknown   -> in_flight              (the service deduplicates, or an operator decided so)

    An entry in flight whose process has ended counts as unknown, never as not sent.
    """

    IN_FLIGHT = "in_flight"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"
    NOT_APPLIED = "not_applied"

    @property
    def label(self) -> str:
        """The state as text for people, such as `not applied`."""
        return self.value.replace("_", " ")


STATE_OF_OUTCOME = {outcome: State(outcome.value) for outcome in Outcome}

UNCONFIRMED = "unconfirmed"
"""Shown instead of "done" if the write was accepted but not confirmed, or was not done as requested."""

OPEN_STATES = (State.UNKNOWN, State.IN_FLIGHT)
"""The states of a write with an unknown outcome: it may have happened, or may still happen."""

POSSIBLE_STATES = (State.DONE, *OPEN_STATES)
"""The states of a write that happened, may have happened, or may still happen."""


class Intent(NamedTuple):
    """A complete write that is about to be sent, as the journal stores it.

    In the body of a webhook or a raw call, texts that may be secret are stored only as hashes. `service` is
    the service's name in the profile, or the origin of its URL. `site` is that origin, with each loopback host
    written as "localhost" (None: not known). Two writes of one operation are identical if they have the same
    `fingerprint`: for a create, the body with normalised numbers; for a release, the id as the service echoes it.
    `allowed_duplicates` are the numbers of entries that this write may repeat. `batch` and `line` are the write's
    row in a batch; `columns` (a JSON object) has the values of the row that are not sent. `run_key` is the key of
    the batch's run ("": the run has no key; None: not known, or not a row of a batch). `operator`, `host` and `process`
    sent the last attempt (None: an earlier version of escrowctl did not record it). `already_sent`: they only recorded
    it, because the write was perhaps sent before, without this journal.
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
    host: str | None = None
    process: int | None = None
    site: str | None = None
    account: Account = NO_ACCOUNT
    batch: str | None = None
    line: int | None = None
    columns: str | None = None
    run_key: str | None = None
    already_sent: bool = False

    @property
    def amount(self) -> Number | None:
        """The amount of the write; None if the request has none, or it is not known."""
        return self.money.amount if self.money else None

    @property
    def currency(self) -> str | None:
        """The currency of the amount; None without an amount."""
        return self.money.currency if self.money else None

    @property
    def service_names(self) -> tuple[str, ...]:
        """The names of the write's service in the journal: `service` and `site`."""
        return tuple(dict.fromkeys((self.service, self.site or self.service)))

    @property
    def sender(self) -> str:
        """The process that sent the last attempt, for messages."""
        return f"process {self.process} on {self.host}" if self.host is not None else "another process"

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """All fingerprints of the write. A once-only write also has the typed id: the echoed id may differ."""
        typed = (self.resource_id,) if self.is_once_only and self.resource_id is not None else ()
        return tuple(dict.fromkeys((self.fingerprint, *typed)))

    @property
    def verb(self) -> str:
        """The operation's name in messages: `create`, `release`, or `DELETE call` for a raw call."""
        known = OPERATIONS_BY_NAME.get(self.operation)
        return known.verb if known else f"{self.method} call"

    @property
    def past_participle(self) -> str:
        """The word for messages after "it was": `created`, `released`, or `called` for a raw call."""
        return OPERATIONS_BY_NAME[self.operation].done if self.operation in OPERATIONS_BY_NAME else "called"

    @property
    def has_no_id(self) -> bool:
        """Whether the request names no id: a create, a webhook's registration, or a raw call without an id."""
        return self.resource_id is None

    @property
    def is_once_only(self) -> bool:
        """Whether sending the write twice is always wrong, as for a release. A second create may be intended."""
        return self.operation in OPERATIONS_BY_NAME and OPERATIONS_BY_NAME[self.operation].is_once_only

    def goes_to_service(self, names: Iterable[str]) -> bool:
        """Whether the write's service has one of these names."""
        return not set(self.service_names).isdisjoint(names)

    def shares_service(self, other: "Intent") -> bool:
        """Whether both writes go to the same service, under any of its names."""
        return self.goes_to_service(other.service_names)

    def may_share_account(self, earlier: "Intent") -> bool:
        """Whether both writes go to the same service and may belong to the same account there."""
        return self.shares_service(earlier) and not self.account.is_other(earlier.account)

    def has_same_id(self, other: "Intent") -> bool:
        """Whether both writes have exactly the same id. The guards also ignore case and Unicode form."""
        return bool(set(self.fingerprints) & set(other.fingerprints))


class Settlement(NamedTuple):
    """The result of one attempt. `outcome` None: still in flight. `detail` explains the outcome in words.

    `result_id` is the id of the created record. `may_repeat`: the reply was 425 or 429. `verified`: the service
    reported the write as done. `not_applied`: an operator decided that the write was not applied; this overrides
    `outcome`. `remark` says how the result of a done write differs from the request.
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
        return State.IN_FLIGHT if self.outcome is None else STATE_OF_OUTCOME[self.outcome]

    @property
    def description(self) -> str:
        """The state, its detail and the id of the created record, as text for messages."""
        created_id = f", id {self.result_id}" if self.result_id else ""
        return f"{self.state.label} ({self.detail}{created_id})"


UNSETTLED = Settlement(None, "")
"""The settlement of an attempt in flight."""


class Event(NamedTuple):
    """One line of an entry's history: the time, the state and the detail of one of its records."""

    at: str
    state: State
    detail: str


class Entry(NamedTuple):
    """One write as the journal knows it now. Times are RFC 3339 in UTC.

    `origin` names the journal and entry that it was imported from (None: it was written here).
    `request_ids` are the request ids of all attempts. `resends` is the number of attempts that an operator
    requested while an earlier attempt was unknown. `counted_on` is the UTC day on which caps count the write: the
    day of the last attempt, or the latest day in the journal if the clock was set back.
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
    request_ids: frozenset[str] = frozenset()
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
    def is_recorded_later(self) -> bool:
        """Whether an operator recorded the write as perhaps sent before: the time of its first sending is not known."""
        # An imported entry has no history.
        return self.intent.already_sent or any(event.detail == RECORDED_LATER for event in self.history)

    @property
    def shown_sent_at(self) -> str | None:
        """When the last attempt was sent, for views; None: it was not, or not by this journal."""
        return None if self.intent.already_sent or self.state is State.NOT_SENT else self.sent_at

    @property
    def shown_state(self) -> str:
        """The state as lists and sums show it: `UNCONFIRMED` instead of "done" if `is_unconfirmed`."""
        return UNCONFIRMED if self.is_unconfirmed else self.state.value

    @property
    def is_unconfirmed(self) -> bool:
        """Whether a done write differs from the request, or is once-only and no read or operator confirmed it."""
        settlement = self.settlement
        is_confirmed = settlement.verified or settlement.detail == DECIDED_APPLIED or not self.intent.is_once_only
        return self.state is State.DONE and (settlement.remark is not None or not is_confirmed)

    @property
    def record_id(self) -> str | None:
        """The service's id of the record that the write changed or created. None: the id is not known."""
        return self.intent.resource_id or self.settlement.result_id

    @property
    def facts(self) -> dict[str, object]:
        """The facts about the entry for errors, as JSON values: enough to resolve the entry without the journal."""
        intent = self.intent
        known: dict[str, object] = {
            "http_status": self.settlement.http_status,
            "request_id": self.request_id,
            "entry": self.name,
            "idempotency_key": intent.idempotency_key,
            "sent_at": self.shown_sent_at,
            "request": {"method": intent.method, "url": intent.url, "body": intent.body},
        }
        more = {"id": self.record_id, "reason": intent.reason}
        return known | {name: value for name, value in more.items() if value}

    @property
    def is_open(self) -> bool:
        """Whether the outcome is not known: the write may have happened, or may still happen."""
        return self.state in OPEN_STATES


def confirmed_by_read(entry: Entry, detail: str) -> Settlement:
    """Return the new settlement of an entry after a read showed that its write is done."""
    known = entry.settlement
    # Only the reply to a write that was known to be done shows the result.
    reply = known.reply if entry.state is State.DONE else None
    return known._replace(
        outcome=Outcome.DONE, detail=detail, reply=reply, verified=True, not_applied=False, remark=None
    )


class OperatorDecision:
    """An operator's decision. Its record has the `facts`: who decided, and the reason."""

    def __init__(self, operator: str, reason: str) -> None:
        self.facts = {"operator": operator, "reason": reason}


class AttemptRequest(NamedTuple):
    """A request to record an attempt of a write before it is sent.

    `caps` limit the amount. `resend_throttled`: also after a reply 425 or 429. `again` is an entry to send again,
    even if the outcome is unknown: the service deduplicates, or there is an operator's `decision`. `intent` is then
    the intent of that entry, with the current account.
    """

    intent: Intent
    request_id: str
    caps: Caps = NO_CAPS
    resend_throttled: bool = False
    again: Entry | None = None
    decision: OperatorDecision | None = None


class Selection(NamedTuple):
    """Selects the newest `limit` entries (None: all) that match every field that is set.

    `since` and `until` are timestamps: sent at `since` or later, and before `until`. `resource_id`: writes to
    this id, and creates that returned this id. `result_ids`: only creates that returned one of these ids. `origin`:
    imported from this journal and entry. `batch`: a batch of this journal. `fingerprint` needs `since`, and
    leaves out rows of a batch with a reference. `without_reference`: only entries without a reference.
    """

    limit: int | None = None
    states: tuple[State, ...] = ()
    profile: str | None = None
    operations: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    reference: str | None = None
    resource_id: str | None = None
    result_ids: tuple[str, ...] = ()
    origin: str | None = None
    batch: str | None = None
    fingerprint: str | None = None
    without_reference: bool = False


def parse_entry_name(text: str) -> int:
    """Return an entry's number from its name: 12 for `j12`. Raises `ErrorCode.BAD_VALUE` for any other text."""
    if not re.fullmatch(r"j[1-9][0-9]{0,17}", text, re.ASCII):
        raise bad_value(f'"{text}" is not the name of a journal entry, such as j12.')
    return int(text[1:])
