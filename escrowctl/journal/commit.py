"""One durable commit of the journal: begin or refuse writes, and record their outcomes. Ask it without writing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, Reason
from escrowctl.journal import caps, guards
from escrowctl.journal.chain import Kind
from escrowctl.journal.fields import facts_of_intent, facts_of_settlement
from escrowctl.journal.fold import keys_to_check
from escrowctl.journal.model import (
    DECIDED_RESEND,
    LOST_IN_FLIGHT,
    RECORDED_LATER,
    UNSETTLED,
    AttemptRequest,
    Entry,
    Intent,
    OperatorDecision,
    Selection,
    Settlement,
    State,
)
from escrowctl.runtime import run_of

if TYPE_CHECKING:
    from escrowctl.journal.storage import Locks, Reading, Storage, Transaction


class Questions:
    """Asks the journal, at one moment, whether a write may be sent."""

    def __init__(self, view: Reading, storage: Storage, locks: Locks) -> None:
        self.view = view
        self._storage = storage
        self._locks = locks

    def find_repeated(self, intent: Intent, *, resend_throttled: bool) -> tuple[Entry | None, Entry | None]:
        """Return (the entry already sent with the intent's key, the entry to send again). At least one is None.

        Raises EscrowctlError if an earlier entry with the same key, fingerprint or reference forbids the intent.
        """
        duplicates = self.find_duplicates(intent)
        # Most writes have no duplicate: then there is nothing to compare.
        if not (duplicates or intent.allowed_duplicates):
            return None, None
        sent, earlier = guards.find_by_key(duplicates, intent, resend_throttled=resend_throttled)
        if sent is None:
            others = [one for one in duplicates if one is not earlier]
            guards.check_duplicates(others, intent, self._find, now=self.view.now())
        return sent, earlier

    def find_duplicates(self, intent: Intent, *, exclude: int | None = None) -> list[Entry]:
        """Return the entries that share a duplicate key and may share the account with an intent, without `exclude`."""
        return [
            refresh_entry(entry, self._storage, self._locks)
            for entry in self.view.find_by_keys(keys_to_check(intent))
            if entry.number != exclude and intent.may_share_account(entry.intent)
        ]

    def _find(self, number: int) -> Entry | None:
        return next(iter(self._storage.read_entries([number])), None)


class Commit(Questions):
    """Applies the journal's rules inside one transaction. Nothing is recorded until the transaction has ended."""

    def __init__(self, transaction: Transaction, storage: Storage, locks: Locks) -> None:
        super().__init__(transaction, storage, locks)
        self.transaction = transaction
        self._hold_sender = cache(locks.hold)  # one sender has many writes in a commit

    def begin_all(self, requests: Sequence[AttemptRequest]) -> list[Entry | EscrowctlError]:
        """Record intents. Return, for each, its entry in flight or, if it was sent before, the earlier entry.

        If an intent is refused, its error is in place of the entry; see `Journal.begin`. Raises
        `ErrorCode.JOURNAL_UNUSABLE`; then the commit must fail for all its intents.
        """
        # To ask once for all costs less than to ask for each.
        self.view.find_by_keys(keys_of(one.intent for one in requests))
        begun: list[Entry | EscrowctlError] = []
        for request in requests:
            try:
                begun.append(self._begin(request))
            except EscrowctlError as refused:
                if refused.code is ErrorCode.JOURNAL_UNUSABLE:
                    raise
                begun.append(refused)
        return begun

    def settle_all(self, settlements: Collection[tuple[Entry, Settlement]]) -> list[Entry | EscrowctlError]:
        """Record the outcomes of attempts. Return their entries, or errors; see `Journal.settle`."""
        created_ids = tuple({one.result_id for _, one in settlements if one.result_id is not None})
        others, results = list[Entry](), list[Entry | EscrowctlError]()
        try:
            others += self._storage.select(Selection(None, result_ids=created_ids)) if created_ids else []
        except EscrowctlError as error:
            # An outcome is recorded even if the other entry is damaged.
            if error.reason != Reason.DAMAGED:
                raise
        # To read all at once costs less than to read each, if other processes have committed since.
        self._storage.read_entries({entry.number for entry, _ in settlements})
        for entry, settlement in settlements:
            result = self._settle(entry, guards.correct_shared_id(entry, settlement, others))
            results.append(result)
            if isinstance(result, Entry):
                others.append(result)
        return results

    def _settle(self, entry: Entry, settlement: Settlement) -> Entry | EscrowctlError:
        """Record the outcome of an attempt, and return the entry, or an error if another process changed it."""
        now = self._find(entry.number)
        facts = facts_of_settlement(settlement)
        if now is not None and (now.request_id, now.state) == (entry.request_id, State.IN_FLIGHT):
            return self.transaction.append(entry.number, Kind.SETTLEMENT, facts)
        if now is None or entry.request_id not in now.request_ids:
            begun = self._record_attempt(entry.intent, None, request_id=entry.request_id)
            self.transaction.append(begun.number, Kind.SETTLEMENT, facts)
        return guards.entry_taken_over(entry, settlement)

    def settle_later(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record an outcome that was found later, for example by a read. Raises `BUSY` if the entry changed."""
        now = self._find(entry.number)
        if now is not None and now.attempt == entry.attempt:
            known = now.settlement
            if known.verified and settlement.verified and known.result_id == settlement.result_id:
                return now
        self._require_unchanged(entry, settlement)
        return self.transaction.append(entry.number, Kind.SETTLEMENT, facts_of_settlement(settlement))

    def decide(self, entry: Entry, settlement: Settlement, decision: OperatorDecision) -> Entry:
        """Record an operator's decision on an entry's outcome. Raises `ErrorCode.BUSY` if the entry has changed."""
        self._require_unchanged(entry, settlement)
        if settlement.not_applied:
            self._require_ended(entry)
        return self._record_decision(entry, settlement, decision)

    def _begin(self, request: AttemptRequest) -> Entry:
        if request.again is not None:
            return self._begin_next_attempt(request, request.again)
        intent = request.intent
        sent, earlier = self.find_repeated(intent, resend_throttled=request.resend_throttled)
        if sent is not None:
            return sent
        if earlier is not None:
            self._require_ended(earlier)
        caps.check_caps(self.view, intent, request.caps, earlier=earlier)
        begun = self._record_attempt(intent, earlier, request_id=request.request_id)
        if not intent.already_sent:
            return begun
        unknown = facts_of_settlement(Settlement(Outcome.UNKNOWN, RECORDED_LATER))
        return self.transaction.append(begun.number, Kind.SETTLEMENT, unknown)

    def _begin_next_attempt(self, request: AttemptRequest, entry: Entry) -> Entry:
        self._require_unchanged(entry)
        self._require_ended(entry)
        intent = request.intent
        others = self.find_duplicates(intent, exclude=entry.number)
        guards.check_duplicates(others, intent, self._find, now=self.view.now())
        # Record nothing before the last possible refusal: other writes share the commit, which would store it.
        caps.check_caps(self.view, intent, request.caps, earlier=entry, is_resend=request.decision is not None)
        if request.decision is not None:
            entry = self._record_decision(entry, entry.settlement._replace(detail=DECIDED_RESEND), request.decision)
        return self._record_attempt(intent, entry, request_id=request.request_id)

    def _record_attempt(self, intent: Intent, earlier: Entry | None, *, request_id: str) -> Entry:
        """Record the next attempt of `earlier`, or the first attempt of a new entry, and return the entry."""
        # Lock before the commit: a process that can see the entry must see that its sender is running.
        self._hold_sender(sender_lock(request_id))
        if intent.batch is not None and intent.line is not None:
            self.transaction.remove_plan_row(intent.batch, intent.line)
        facts = facts_of_intent(intent, attempt=earlier.attempt + 1 if earlier else 1, request_id=request_id)
        return self.transaction.append(earlier.number if earlier else None, Kind.INTENT, facts)

    def _record_decision(self, entry: Entry, settlement: Settlement, decision: OperatorDecision) -> Entry:
        return self.transaction.append(entry.number, Kind.DECISION, facts_of_settlement(settlement) | decision.facts)

    def _require_ended(self, entry: Entry) -> None:
        """Raise `ErrorCode.BUSY` if the lock of an attempt's process lapsed, and what it sent may still arrive."""
        stored = self._find(entry.number)
        is_lost = stored is not None and stored.state is State.IN_FLIGHT
        if is_lost and (seconds := self._locks.seconds_to_wait(sender_lock(entry.request_id))):
            sender = entry.intent.sender
            message = f"what {sender} sent for {entry.name} may still arrive: try again in {seconds + 1:.0f} s."
            raise guards.refusal(ErrorCode.BUSY, message, entry)

    def _require_unchanged(self, entry: Entry, settlement: Settlement = UNSETTLED) -> None:
        """Raise `ErrorCode.BUSY` if an entry has changed since the caller read it, or another one got its new id."""
        stored = self._find(entry.number)
        now = refresh_entry(stored, self._storage, self._locks) if stored else None
        new_id = settlement.result_id if settlement.result_id != entry.settlement.result_id else None
        others = self._storage.select(Selection(None, result_ids=(new_id,))) if new_id is not None else []
        is_taken = any(guards.is_other_done(entry, other) for other in others)
        if is_taken or now is None or (now.settlement, now.attempt) != (entry.settlement, entry.attempt):
            message = f"another process changed {entry.name} since this command read it."
            raise guards.refusal(ErrorCode.BUSY, message, entry)


def keys_of(intents: Iterable[Intent]) -> frozenset[int]:
    """Return the duplicate keys with which the intents are compared."""
    return frozenset[int]().union(*map(keys_to_check, intents))


def sender_lock(request_id: str) -> str:
    """Return the name of the lock that a process holds, until it ends, once it has begun a write with this id.

    The part of the id that names the run is enough.
    """
    return f"sender\n{run_of(request_id)}"


def refresh_entry(entry: Entry, storage: Storage, locks: Locks) -> Entry:
    """Return an entry in its current state: unknown if the process that sent the write ended without an outcome."""
    if entry.state is not State.IN_FLIGHT or locks.is_held(sender_lock(entry.request_id)):
        return entry
    # Its process may have settled it, and ended, since it was read: then the stored entry counts.
    now = next(iter(storage.read_entries([entry.number])), entry)
    if now.state is not State.IN_FLIGHT or now.attempt != entry.attempt:
        return now
    return entry._replace(settlement=UNSETTLED._replace(outcome=Outcome.UNKNOWN, detail=LOST_IN_FLIGHT))
