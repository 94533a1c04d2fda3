"""The rules of the journal: record each intent before it is sent, refuse duplicates, and record the outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, Reason, not_sent
from escrowctl.journal import caps
from escrowctl.journal.chain import Head, Kind
from escrowctl.journal.commit import Commit, Questions, keys_of, refresh_entry, sender_lock
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys, reference_keys
from escrowctl.journal.model import AttemptRequest, Caps, Entry, Intent, OperatorDecision, Selection, Settlement, State
from escrowctl.journal.storage import CommitUnknownError, describe_missing, unusable
from escrowctl.journal.witness import SavedHead, Witness

if TYPE_CHECKING:
    from datetime import datetime

    from escrowctl.journal.signing_secrets import SigningSecrets
    from escrowctl.journal.storage import Closing, JournalPlace, Locks, PlanRow, Reading, Storage

WriteGroup = tuple[Sequence[AttemptRequest], Sequence[tuple[Entry, Settlement]]]
"""Intents and outcomes to record."""

WriteResults = tuple[list[Entry | EscrowctlError], list[Entry | EscrowctlError]]
"""The entry or the error of each of them."""

_PAGE_SIZE = 500


class Journal:
    """One journal with its locks. `close` it, or let the process end: the locks end with the process.

    Every method may raise EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`; then nothing may be sent. Only the
    thread that opened the storage may use the journal. `refuse` is called in each commit that would record intents:
    if it returns an error, they are refused with it.
    """

    def __init__(
        self,
        storage: Storage,
        locks: Locks,
        place: JournalPlace,
        refuse: Callable[[], EscrowctlError | None] = lambda: None,
    ) -> None:
        self._refuse = refuse
        self.storage = storage
        self.locks = locks
        self.place = place
        self.witness = Witness(place)
        self._checked_head: Head | None = None
        self._kept = set[object]()
        self.senders: set[str] = set()
        """The locks of senders that this process holds until it ends; see `hold`."""

    @cached_property
    def secrets(self) -> SigningSecrets:
        """The signing secrets of the endpoints that writes in this journal registered."""
        from escrowctl.journal.signing_secrets import SigningSecrets  # noqa: PLC0415 - for webhooks alone

        return SigningSecrets(self.place.folder)

    def close(self) -> None:
        """Close the storage and free every lock."""
        self.storage.close()
        self.locks.close()

    def begin(self, attempt: AttemptRequest) -> Entry:
        """Store one intent durably, and return its entry. The caller sends it only if the entry is in flight.

        If the same request was sent before with the same idempotency key, the earlier entry is returned: with its
        outcome, or in flight again if the guards allow it. Raises EscrowctlError: ALREADY_DONE, BAD_VALUE (an allowed
        duplicate does not exist), BUSY, CAPPED, CONFLICT, EARLIER_UNKNOWN, KEY_REUSED or REFERENCE_REUSED; see
        `journal.guards` and `caps`.
        """
        return _return_or_raise(self.write_all([attempt], ())[0])

    def settle(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record the outcome of one of this process's attempts durably, and return the updated entry.

        If another process has changed the entry (fencing), it stays as it is, and EscrowctlError `OUTCOME_UNKNOWN` is
        raised. If that entry does not contain the attempt, the attempt and the outcome are recorded as a new entry.
        """
        try:
            return self._settle(entry, settlement)
        except EscrowctlError as error:
            # If only the last sync of the commit failed, the commit is stored all the same. If a power failure
            # undoes it, the entry is in flight again and reads as unknown: nothing is sent twice for it.
            # A commit that shared an outcome with intents may also have failed because of these, or of a connection.
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                with contextlib.suppress(EscrowctlError):
                    return self._find_stored(entry, settlement) or self._settle(entry, settlement)
            raise

    def _settle(self, entry: Entry, settlement: Settlement) -> Entry:
        return _return_or_raise(self.write_all((), [(entry, settlement)])[1])

    def write_all(
        self, attempts: Sequence[AttemptRequest], settlements: Sequence[tuple[Entry, Settlement]]
    ) -> WriteResults:
        """Record outcomes, then intents, in one commit. Return the entry or the error of each: first of the intents."""
        (results,) = self.write_groups([(attempts, settlements)], keys_of(one.intent for one in attempts))
        return results

    def write_groups(self, groups: Iterable[WriteGroup], keys: Collection[int]) -> list[WriteResults]:
        """Record several groups as `write_all` does, in one commit. `keys`: the duplicate keys of the first group.

        Each next group is asked for when the one before is recorded: so it may have come meanwhile.
        """
        results, begun = list[WriteResults](), list[Entry]()
        refused, is_checked = None, False
        try:
            with self._begin_commit(keys) as commit:
                head = commit.view.head
                for attempts, settlements in groups:
                    if attempts and not is_checked:
                        refused, is_checked = self._find_refusal(commit.view, head), True
                    settled = commit.settle_all(settlements)
                    results.append(([refused] * len(attempts) if refused else commit.begin_all(attempts), settled))
                    begun += [one for one in results[-1][0] if isinstance(one, Entry)]
                self._keep_shared(begun)
        except CommitUnknownError:
            self._take_back(begun)
            raise
        return results

    def _find_refusal(self, view: Reading, head: Head) -> EscrowctlError | None:
        """Return the error for all intents of a commit; None: they may be recorded. Outcomes are, in any case."""
        try:
            self._check(view, head)
            return self._refuse()
        except EscrowctlError as error:
            return error

    def decide(self, entry: Entry, settlement: Settlement, decision: OperatorDecision) -> Entry:
        """Record an operator's decision on an entry's outcome. Raises `ErrorCode.BUSY` if the entry has changed."""
        with self.checked_commit() as commit:
            return commit.decide(entry, settlement, decision)

    def settle_later(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record an outcome that was found later, for example by a read. Raises `BUSY` if the entry changed."""
        with self.checked_commit() as commit:
            return commit.settle_later(entry, settlement)

    def store_new_batch(self, make_rows: Callable[[str], Iterable[PlanRow]]) -> str:
        """Store the rows of a new batch durably in one commit, and return the batch's name.

        `make_rows` gets the name and returns the rows. A row is removed from the plan when its write begins.
        """
        with self.checked_commit() as commit:
            name = self.next_batch()
            commit.transaction.store_plan_rows(make_rows(name))
            return name

    def next_batch(self) -> str:
        """Return the name that a new batch would get now, such as `b41`. In this journal, no entry has it."""
        return f"b{max((int(row.batch[1:]) for row in self.storage.list_batches(imported=True)), default=0) + 1}"

    def read_batch(self, batch: str, *, after: int, limit: int) -> list[Entry]:
        """Return up to `limit` entries of a batch, in order, with lines above `after`, in their current state."""
        return [self._refresh(entry) for entry in self.storage.read_batch(batch, after=after, limit=limit)]

    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        """Store rows of a batch's plan, for any process to claim. A stored row with the same number is replaced."""
        with self.checked_commit() as commit:
            commit.transaction.store_plan_rows(rows)

    def claim(self, batch: str, *, sender: str, limit: int) -> list[PlanRow]:
        """Mark up to `limit` rows of a batch's plan as taken by this process, and return them, in order.

        `sender` is the part of this process's request ids that names its run; `hold` its lock before. A row that
        another running process has taken is not returned.
        """
        return self.storage.claim(batch, sender, limit, self.is_alive)

    def change_plan_row(self, batch: str, row: int, change: Callable[[PlanRow | None, datetime], PlanRow]) -> PlanRow:
        """Replace a row of a batch's plan by the one that `change` makes of it (None: there is none), and return it.

        `change` also gets the time by the journal's clock.
        """
        with self.checked_commit() as commit:
            found = self.storage.read_plan(batch, after=row - 1, limit=1)
            changed = change(found[0] if found and found[0].row == row else None, commit.view.now())
            commit.transaction.store_plan_rows([changed])
            return changed

    def hold(self, sender: str, *names: str) -> bool:
        """Take locks for a sender of this process: all, or none if another process or thread has one.

        The sender's own lock (`commit.sender_lock`) is taken with the first of them, and kept until the process ends.
        """
        own = {sender_lock(sender)} - self.senders
        is_held = self.locks.hold(*names, *own)
        self.senders |= own if is_held else set()
        return is_held

    def is_alive(self, sender: str) -> bool:
        """Whether the process of a sender runs."""
        return self.locks.is_held(sender_lock(sender))

    def has_any(self, keys: Collection[int]) -> bool:
        """Whether an entry has one of these duplicate keys."""
        with self._asking() as questions:
            return bool(questions.view.find_by_keys(keys))

    def find_possible_repeats(self, intents: Sequence[Intent]) -> list[list[Entry]]:
        """Return, for each intent, the entries with the same reference or, if it has none, the same id or body.

        These writes happened or may have happened. Entries of other services and accounts are left out.
        """
        keys = [reference_keys(one) or fingerprint_keys(one) for one in intents]
        with self._asking() as questions:
            found = questions.view.find_by_keys(frozenset().union(*keys))
            under = [(duplicate_keys(entry), self._refresh(entry)) for entry in found]
        return [
            [entry for own, entry in under if own & wanted and intent.may_share_account(entry.intent)]
            for intent, wanted in zip(intents, keys, strict=True)
        ]

    def find_recent_done(self, intent: Intent, *, since: str) -> Entry | None:
        """Return the newest done write that has the intent's body and was sent at `since` or later, or None.

        If the intent has a reference, only entries without one are returned: two references mean two writes.
        """
        same = Selection(
            1,
            states=(State.DONE,),
            operations=(intent.operation,),
            since=since,
            fingerprint=intent.fingerprint,
            without_reference=intent.reference is not None,
        )
        return next((one for one in self.select_all(same) if intent.may_share_account(one.intent)), None)

    def check_caps(self, intents: Iterable[Intent], limits: Caps) -> None:
        """Raise `ErrorCode.CAPPED` if an intent exceeds the caps. A batch has one intent for each currency."""
        with self._asking() as questions:
            for intent in intents:
                caps.check_caps(questions.view, intent, limits)

    def find_repeated(self, intent: Intent, *, resend_throttled: bool) -> Entry | None:
        """Return the entry that was already sent with this intent's idempotency key, or None. Record nothing.

        Raises the errors of `begin`, except CAPPED.
        """
        with self._asking() as questions:
            return questions.find_repeated(intent, resend_throttled=resend_throttled)[0]

    def is_unopened(self) -> bool:
        """Whether live creates have to wait: the journal was made from an export, and no operator has opened it."""
        return self.storage.read_last_journal_kind() == Kind.OPENING

    def open_for_creates(self, decision: OperatorDecision) -> None:
        """Record why live creates may be sent although the export that made this journal may lack writes."""
        with self.checked_commit() as commit:
            commit.transaction.append_journal_record(Kind.REASON, decision.facts)

    def find(self, number: int) -> Entry | None:
        """Return the entry with this number and its history, in its current state, or None."""
        found = self.storage.read_entries([number])
        return self._refresh(found[0]) if found else None

    def require_complete(self) -> Closing | None:
        """Raise `JOURNAL_UNUSABLE` if the journal is missing, contradicts its saved head, or has a damaged end.

        Return what its closing record says. None: the journal is open.
        """
        self.witness.refuse_lost_journal()
        with self._reading() as view:
            return view.closing

    def require_exists(self) -> None:
        """Raise `ErrorCode.NOT_FOUND` if no journal was ever created here, `JOURNAL_UNUSABLE` if it was lost."""
        if not self.place.exists:
            self.require_complete()
            raise EscrowctlError(ErrorCode.NOT_FOUND, f"{describe_missing(self.place)}.")

    def select_all(self, selection: Selection) -> Iterator[Entry]:
        """Yield every entry that matches a selection, newest first. The selection's limit only makes pages smaller.

        An entry in flight whose process has ended is unknown.
        Each page is read completely before its entries are yielded: an open read would block writers.
        """
        before: int | None = None
        # An entry that is unknown now may still be stored as in flight.
        more = (State.IN_FLIGHT,) if State.UNKNOWN in selection.states else ()
        size = min(selection.limit or _PAGE_SIZE, _PAGE_SIZE)
        stored = selection._replace(limit=size, states=(*selection.states, *more))
        while page := self.storage.select(stored, before=before):
            for entry in page:
                now = self._refresh(entry)
                if not selection.states or now.state in selection.states:
                    yield now
            before = page[-1].number

    @contextlib.contextmanager
    def checked_commit(self) -> Iterator[Commit]:
        """Check the journal, then yield a commit."""
        with self._begin_commit() as commit:
            self._check(commit.view, commit.view.head)
            yield commit

    @contextlib.contextmanager
    def _begin_commit(self, keys: Collection[int] = ()) -> Iterator[Commit]:
        with self.storage.transaction(keys) as transaction:
            self._require_open(transaction)
            before = transaction.head
            yield Commit(transaction, self.storage, self.locks)
        # An outcome is recorded without a check: it must not set the saved head back to that of an older copy.
        if self._checked_head == before != transaction.head:
            self._checked_head = transaction.head
            self.witness.update(self.storage.journal_id, transaction.head)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Questions]:
        """Check the journal, then yield its state at one moment: a change between two reads looks like damage."""
        with self._reading() as view:
            self._require_open(view)
            yield Questions(view, self.storage, self.locks)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Reading]:
        saved = self.witness.read()
        with self.storage.reading() as view:
            self._check(view, view.head, saved)
            yield view

    def _require_open(self, view: Reading) -> None:
        """Raise `JOURNAL_UNUSABLE` if another journal replaced this one."""
        if (closing := view.closing) is not None:
            reason = Reason.CLOSED if closing.where is None else Reason.MOVED
            message = f"the journal {self.place.location} is closed: {closing}."
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, facts={"where": closing.where}, reason=reason)

    def _check(self, view: Reading, head: Head, saved: SavedHead | None = None) -> None:
        """Raise `JOURNAL_UNUSABLE` if the end of the journal, `head`, is damaged, or contradicts the saved head."""
        view.check()
        # A chain that ends as a checked commit of this object left it is not an older copy.
        if head == self._checked_head:
            return
        if why := self.witness.compare(saved := saved or self.witness.read(), self.storage.journal_id, view, head):
            self._require_open(view)  # a closed journal is not replaced again
            raise unusable(self.place.location, why, reason=Reason.DAMAGED)
        self._checked_head = head
        if saved is not None and saved.head != head:
            self.witness.update(self.storage.journal_id, head)

    def _keep_shared(self, begun: Sequence[Entry]) -> None:
        """Keep on this machine that these writes are in a shared journal, before the commit that records them."""
        if self.place.is_shared:
            from escrowctl.journal.shared_writes import keep_writes  # noqa: PLC0415 - for shared journals alone

            folder, location = self.place.head_path.parent, self.place.location
            keep_writes(folder, begun, self.storage.journal_id, location, self._kept)

    def _take_back(self, begun: Sequence[Entry]) -> None:
        """Record that new entries were not sent, if the failed commit of their intents is stored all the same.

        If that fails too, they read as unknown when this process has ended. So does an entry with an earlier attempt,
        which may have been applied.
        """
        settlement = Settlement(Outcome.NOT_SENT, "the commit of the intent failed, so nothing was sent")
        new = {entry.number: entry for entry in begun if entry.state is State.IN_FLIGHT and entry.attempt == 1}
        for _ in range(2 if new else 0):  # this connection may be lost too
            with contextlib.suppress(EscrowctlError), self.storage.reopen() as storage:
                stored = [one for one in storage.read_entries(new) if one.request_id == new[one.number].request_id]
                if stored:
                    Journal(storage, self.locks, self.place).write_all((), [(entry, settlement) for entry in stored])
                return

    def _find_stored(self, entry: Entry, settlement: Settlement) -> Entry | None:
        """Open the journal again, and return the entry if this outcome is stored in it; else None."""
        with contextlib.suppress(EscrowctlError), self.storage.reopen() as storage:
            for now in storage.read_entries([entry.number]):
                # A remark on another create with the same id may have been added.
                if (now.attempt, now.settlement._replace(remark=settlement.remark)) == (entry.attempt, settlement):
                    return now
        return None

    def _refresh(self, entry: Entry) -> Entry:
        return refresh_entry(entry, self.storage, self.locks)


def _return_or_raise(results: Sequence[Entry | EscrowctlError]) -> Entry:
    (result,) = results
    if isinstance(result, EscrowctlError):
        raise result
    return result
