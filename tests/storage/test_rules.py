"""The journal's rules, on the adapter in memory: guards, idempotency keys and caps, as tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import OPERATIONS_BY_NAME, Operation
from escrowctl.contract.redaction import Secret
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.account import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Intent, OperatorDecision, Settlement, State
from escrowctl.journal.opening import open_journal
from storage import memory
from storage.writes import DONE, REFUSED, UNKNOWN, create, release

pytestmark = pytest.mark.representative("*")
SENT, REPLAYED = "sent", "replayed"
UNAUTHORIZED = Settlement(Outcome.REFUSED, "401", 401)
THROTTLED = Settlement(Outcome.REFUSED, "429", 429, may_repeat=True)
NOT_SENT = Settlement(Outcome.NOT_SENT, "no connection")
ALREADY, BUSY, CAPPED, CONFLICT = ErrorCode.ALREADY_DONE, ErrorCode.BUSY, ErrorCode.CAPPED, ErrorCode.CONFLICT
UNRESOLVED, REUSED, KEY_REUSED = ErrorCode.EARLIER_UNKNOWN, ErrorCode.REFERENCE_REUSED, ErrorCode.KEY_REUSED


@dataclass
class Writer:
    """A journal in memory with its clock, and one caller that sends and settles at once."""

    journal: Journal
    now: datetime = NOW

    def send(
        self,
        intent: Intent,
        settlement: Settlement | None = DONE,
        *,
        cap: str | None = None,
        resend_throttled: bool = False,
    ) -> str:
        """Begin a write and settle it (None: it stays in flight). Return what happened, or the code of the refusal."""
        caps = {"USD": Decimal(cap)} if cap else {}
        try:
            begun = self.journal.begin(AttemptRequest(intent, "r", caps, resend_throttled))
        except EscrowctlError as error:
            return error.code
        if begun.state is not State.IN_FLIGHT:
            return REPLAYED
        if settlement is not None:
            self.journal.settle(begun, settlement)
        return SENT


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    sender = Writer(open_journal(memory.MemoryPlace(tmp_path), now=lambda: sender.now))
    yield sender
    memory.forget_all()


def again(**changed: Any) -> Intent:
    """Return the create of 100 USD once more, under another idempotency key, with these changes."""
    return create(100, key="again")._replace(**changed)


FIRST = create(100, key="first")
NAMED = FIRST._replace(reference="A-1")
RELEASE, CAPITALS = release("tx_ab"), release("TX_AB")
GUARDS = {
    "identical, unknown": (FIRST, UNKNOWN, again(), UNRESOLVED),
    "identical, in flight": (FIRST, None, again(), BUSY),
    "identical, done": (FIRST, DONE, again(), SENT),
    "identical, refused": (FIRST, REFUSED, again(), SENT),
    "identical, not sent": (FIRST, NOT_SENT, again(), SENT),
    "another amount": (FIRST, UNKNOWN, create(101), SENT),
    "another service": (FIRST, UNKNOWN, again(service="https://other.example.com"), SENT),
    "allowed": (FIRST, UNKNOWN, again(allowed_duplicates=(1,)), SENT),
    "another entry allowed": (FIRST, UNKNOWN, again(allowed_duplicates=(9,)), ErrorCode.BAD_VALUE),
    "reference added": (FIRST, UNKNOWN, again(reference="A-1"), UNRESOLVED),
    "reference left out": (NAMED, UNKNOWN, again(), UNRESOLVED),
    "another reference": (NAMED, UNKNOWN, again(reference="A-2"), SENT),
    "reference, unknown": (NAMED, UNKNOWN, again(reference="A-1"), UNRESOLVED),
    "reference, unknown and allowed": (NAMED, UNKNOWN, again(reference="A-1", allowed_duplicates=(1,)), UNRESOLVED),
    "reference, unknown, another amount": (NAMED, UNKNOWN, create(7, reference="A-1"), UNRESOLVED),
    "reference, done": (NAMED, DONE, again(reference="A-1"), REUSED),
    "reference, done, another amount": (NAMED, DONE, create(7, reference="A-1"), REUSED),
    "reference, refused": (NAMED, REFUSED, again(reference="A-1"), SENT),
    "reference, blanks": (NAMED, DONE, again(reference=" A-1 "), REUSED),
    "reference, composed": (FIRST._replace(reference="Zu\u0308"), DONE, again(reference="Z\u00fc"), REUSED),
    "reference, variation selector": (NAMED, DONE, again(reference="A\ufe0f-1"), REUSED),
    "reference, selector of plane 14": (NAMED, DONE, again(reference="A\U000e0100-1"), REUSED),
    "reference, filler": (NAMED, DONE, again(reference="A\u3164-1"), REUSED),
    "reference, blank braille": (NAMED, DONE, again(reference="A\u2800-1"), REUSED),
    "reference, another case": (NAMED, DONE, again(reference="a-1"), SENT),
    "release, done": (RELEASE, DONE, RELEASE, ALREADY),
    "release, done and allowed": (RELEASE, DONE, RELEASE._replace(allowed_duplicates=(1,)), ALREADY),
    "release, unknown and allowed": (RELEASE, UNKNOWN, RELEASE._replace(allowed_duplicates=(1,)), UNRESOLVED),
    "release, refused": (RELEASE, REFUSED, RELEASE, SENT),
    "release, another case": (RELEASE, DONE, CAPITALS, CONFLICT),
    "release, another case, unknown": (RELEASE, UNKNOWN, CAPITALS, CONFLICT),
    "release, another case, allowed": (RELEASE, DONE, CAPITALS._replace(allowed_duplicates=(1,)), SENT),
}
"""Name -> a write, its outcome, a later write, and what becomes of that."""


@pytest.mark.parametrize("case", GUARDS.values(), ids=GUARDS)
def test_later_write_is_sent_or_refused(writer: Writer, case: tuple[Intent, Settlement | None, Intent, str]) -> None:
    first, settlement, second, expected = case
    account = Account("acme")
    assert writer.send(first._replace(account=account), settlement) == SENT

    key = f"{second.idempotency_key}-2"
    assert writer.send(second._replace(account=account, idempotency_key=key)) == expected


@pytest.mark.parametrize(
    ("settlement", "code"), [(DONE, CONFLICT), (UNKNOWN, UNRESOLVED), (None, BUSY), (REFUSED, SENT)]
)
def test_once_only_write_excludes_every_other(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, settlement: Settlement | None, code: str
) -> None:
    cancel = Operation("cancel", "cancel", "PUT", "/transactions/{id}/cancel", "transaction", is_once_only=True)
    monkeypatch.setitem(OPERATIONS_BY_NAME, cancel.name, cancel)
    account = Account("acme")
    writer.send(RELEASE._replace(operation=cancel.name, account=account), settlement)

    assert writer.send(RELEASE._replace(idempotency_key="another", account=account)) == code


BY_URL, BY_NAME, SITE = "http://127.0.0.1:8080", "http://localhost:8080", "http://loopback:8080"


@pytest.mark.parametrize("second", [BY_URL, BY_NAME, "other"])
@pytest.mark.parametrize(
    ("write", "settlement", "code"),
    [(release("tx_1"), DONE, ALREADY), (NAMED, DONE, REUSED), (FIRST, UNKNOWN, UNRESOLVED)],
    ids=["release", "reference", "unknown"],
)
def test_other_name_of_a_service_hides_no_earlier_write(
    writer: Writer, write: Intent, settlement: Settlement, code: str, second: str
) -> None:
    """A service_id joins names; it never parts an origin from itself."""
    write = write._replace(account=Account("acme"))
    writer.send(write._replace(service="acme", site=SITE), settlement)

    assert writer.send(write._replace(service=second, site=SITE, idempotency_key="another")) == code


ACME, OTHER = Account("acme"), Account("other")
ROTATED = Account(key=Secret("sk_test_rotated_0123456789"))


@pytest.mark.parametrize(
    ("second", "code"),
    [(ACME, ALREADY), (OTHER, SENT), (Account(), CONFLICT), (ROTATED, CONFLICT)],
    ids=["same", "another", "no name", "another key"],
)
def test_release_counts_as_done_for_its_account_only(writer: Writer, second: Account, code: str) -> None:
    writer.send(release("tx_1")._replace(account=ACME))

    assert writer.send(release("tx_1")._replace(account=second, idempotency_key="another")) == code


KEYED = create(100, key="k", account=ACME)
KEYS = {
    "done": (KEYED, DONE, KEYED, REPLAYED),
    "unknown": (KEYED, UNKNOWN, KEYED, REPLAYED),
    "in flight": (KEYED, None, KEYED, BUSY),
    "refused": (KEYED, REFUSED, KEYED, REPLAYED),
    "throttled": (KEYED, THROTTLED, KEYED, REPLAYED),
    "API key refused": (KEYED, UNAUTHORIZED, KEYED, SENT),
    "not sent": (KEYED, NOT_SENT, KEYED, SENT),
    "another body": (KEYED, DONE, create(7, key="k", account=ACME), KEY_REUSED),
    "another account": (KEYED, DONE, KEYED._replace(account=OTHER), SENT),
    "an unknown account": (KEYED, DONE, KEYED._replace(account=Account()), KEY_REUSED),
    "an unknown account, unknown": (KEYED, UNKNOWN, KEYED._replace(account=Account()), UNRESOLVED),
    "another reference": (KEYED._replace(reference="r-1"), DONE, KEYED._replace(reference="r-2"), KEY_REUSED),
    "reference added": (KEYED, DONE, KEYED._replace(reference="r-1"), KEY_REUSED),
    "reference left out": (KEYED._replace(reference="r-1"), DONE, KEYED, REPLAYED),
    "reference lost, key refused": (KEYED._replace(reference="r-1"), UNAUTHORIZED, KEYED, KEY_REUSED),
    "reference lost, not sent": (KEYED._replace(reference="r-1"), NOT_SENT, KEYED, KEY_REUSED),
    "a release": (KEYED, DONE, release("tx_1")._replace(idempotency_key="k", account=ACME), KEY_REUSED),
}
"""Name -> a write, its outcome, a later write under the same key, and what becomes of that."""


@pytest.mark.parametrize("case", KEYS.values(), ids=KEYS)
def test_key_used_before_repeats_its_result_or_is_refused(
    writer: Writer, case: tuple[Intent, Settlement | None, Intent, str]
) -> None:
    first, settlement, second, expected = case
    assert writer.send(first, settlement) == SENT

    assert writer.send(second) == expected


def test_throttled_write_is_sent_again_if_the_service_allows_it(writer: Writer) -> None:
    results = [writer.send(KEYED, settlement, resend_throttled=True) for settlement in (THROTTLED, DONE, DONE)]

    assert results == [SENT, SENT, REPLAYED]
    assert [(entry.attempt, entry.state) for entry in writer.journal.storage.read_entries([1, 2])] == [(2, State.DONE)]


# Caps


DAY, EVE = datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)
NEXT, AHEAD = datetime(2026, 11, 22, tzinfo=UTC), datetime(2036, 11, 21, 12, tzinfo=UTC)
AFTER = datetime(2036, 11, 22, tzinfo=UTC)
CAPS = {
    "up to the cap": ([(DAY, 60, DONE), (DAY, 40, DONE)], SENT),
    "above the cap": ([(DAY, 60, DONE), (DAY, 41, DONE)], CAPPED),
    "unknown counts": ([(DAY, 100, UNKNOWN), (DAY, 99, DONE)], CAPPED),
    "in flight counts": ([(DAY, 100, None), (DAY, 99, DONE)], CAPPED),
    "refused does not": ([(DAY, 100, REFUSED), (DAY, 99, DONE)], SENT),
    "not sent does not": ([(DAY, 100, NOT_SENT), (DAY, 99, DONE)], SENT),
    "next day": ([(EVE, 100, DONE), (DAY, 99, DONE)], SENT),
    "midnight": ([(DAY, 100, DONE), (NEXT, 99, DONE)], SENT),
    "clock set back over midnight": ([(DAY, 100, DONE), (EVE, 99, DONE)], CAPPED),
    "clock set back from tomorrow": ([(NEXT, 100, DONE), (DAY, 99, DONE)], CAPPED),
    "sent with the clock set back": ([(DAY, 1, DONE), (EVE, 99, DONE), (DAY, 2, DONE)], CAPPED),
    "dated in the future": ([(AHEAD, 99, DONE), (DAY, 2, DONE)], CAPPED),
    "future has passed": ([(AHEAD, 99, DONE), (AFTER, 2, DONE)], SENT),
}
"""Name -> times, amounts and outcomes of creates under a cap of 100 USD, and what becomes of the last one."""


@pytest.mark.parametrize("case", CAPS.values(), ids=CAPS)
def test_cap_counts_what_may_have_happened_that_day(
    writer: Writer, case: tuple[list[tuple[datetime, int, Settlement | None]], str]
) -> None:
    writes, last = case
    results = []
    for number, (time, amount, settlement) in enumerate(writes):
        writer.now = time
        results.append(writer.send(create(amount, key=f"k{number}"), settlement, cap="100"))

    assert results == [SENT] * (len(writes) - 1) + [last]


@pytest.mark.parametrize("money", [None, "-5 USD", "0 USD", "1 EUR"])
def test_money_that_a_cap_cannot_count_is_refused(writer: Writer, money: str | None) -> None:
    amount, _, currency = (money or "").partition(" ")
    write = create(1, money=Money(Number(amount), currency) if money else None)

    assert writer.send(write, cap="100") == CAPPED
    assert writer.send(write) == SENT


def test_unknown_amount_of_the_day_refuses_every_write_under_caps(writer: Writer) -> None:
    writer.now = EVE
    results = [writer.send(release("tx_1"), cap="100")]
    writer.now = DAY
    third = release("tx_3")._replace(idempotency_key="3")
    unread = release("tx_2")._replace(idempotency_key="2", money=None)
    results += [writer.send(unread), writer.send(third, cap="100")]
    writer.now = NEXT

    assert [*results, writer.send(third, cap="100")] == [SENT, SENT, CAPPED, SENT]


def test_resent_write_counts_as_often_as_it_was_sent(writer: Writer) -> None:
    entry = writer.journal.begin(AttemptRequest(create(60), "r"))
    decision = OperatorDecision("anna", "desk")
    unknown = writer.journal.settle(entry, UNKNOWN)
    sent = writer.journal.begin(AttemptRequest(unknown.intent, "s", again=unknown, decision=decision))
    writer.journal.settle(sent, UNKNOWN)

    assert [writer.send(create(amount), cap="150") for amount in (31, 30)] == [CAPPED, SENT]
