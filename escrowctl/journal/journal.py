"""The journal as the client and the commands use it: begin, settle, and look back."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from escrowctl.contract.json import JsonValue
from escrowctl.contract.money import sum_exactly
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.journal import guards, signing_secrets
from escrowctl.journal.accounts import Account
from escrowctl.journal.entries import RESENT_ON_WORD, Entry, Intent, Selection, State, Verdict
from escrowctl.journal.failures import behind, damaged
from escrowctl.journal.fencing import is_on_record, settle_if_current
from escrowctl.journal.locks import AskedLockFile, LockFile, place_of
from escrowctl.journal.spending import NO_CAPS, Caps, count_resends, find_ahead, sum_since
from escrowctl.journal.store import Store
from escrowctl.surroundings import timestamp

LOST_IN_FLIGHT = "the process that sent it ended before it could record an outcome"
_POLL_SECONDS = 0.05
_LONG_SILENCE = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer to `Journal.begin`: an entry to send now, or (`replayed`) one that was sent before."""

    entry: Entry
    replayed: bool


@dataclass(frozen=True, slots=True)
class Word:
    """An operator's word on an entry: who said it, and why."""

    operator: str
    reason: str


class Journal:
    """One journal file with its locks. `close` it, or let the process end: the locks die with it.

    Every method may raise EscrowctlError `journal_unusable` (exit 17); then nothing may be sent.
    `reading`: for those who only look; nothing is made, and what cannot be written is read.
    """

    def __init__(self, folder: Path, *, now: Callable[[], datetime], reading: bool = False) -> None:
        self._folder = folder
        self._now = now
        path = folder / "journal.db"
        self.store = Store.open(path, made_at=timestamp(now()), reading=reading)
        self._lock_path = folder / "journal.lock"
        with _lockable(self._lock_path):
            self._locks = (AskedLockFile if reading else LockFile)(self._lock_path)

    def close(self) -> None:
        """Close the file and free every lock."""
        self.store.close()
        self._locks.close()

    @property
    def journal_id(self) -> str:
        """The journal's own id."""
        return self.store.journal_id

    def long_silence(self) -> str | None:
        """Return the date of the last record where it is more than 400 days before now, else None.

        A clock that jumped ahead looks like that, and caps count what it dates until that date has come.
        """
        last = self.store.links(after=self.store.head().sequence - 1, limit=1)
        dates = [link.record.at for link in last if link.record.at < timestamp(self._now() - _LONG_SILENCE)]
        return dates[0] if dates else None

    def begin(self, intent: Intent, *, request_id: str, caps: Caps = NO_CAPS, repeats_throttled: bool = False) -> Begun:
        """Make the intent durable, so that its bytes may leave; or refuse it.

        An intent whose idempotency key and request were sent before is not sent again: the earlier
        entry is returned as replayed, unless it is known not to have happened, or was answered with
        425 or 429 and `repeats_throttled`; then it gets its next attempt. Raises EscrowctlError 5, 7
        or 12 as `journal.guards` says.
        """
        with self._bringing_to_life() as hold:
            sent, earlier = self._under_key(intent, repeats_throttled=repeats_throttled)
            if sent is not None:
                return Begun(sent, replayed=True)
            self._check_guards(intent, but=earlier.number if earlier else None)
            self._check_caps(intent, caps, but=earlier)
            begun = self._attempt(intent, earlier, request_id=request_id, hold=hold)
        return Begun(self._begun(begun), replayed=False)

    def begin_again(
        self, entry: Entry, account: Account, *, request_id: str, caps: Caps = NO_CAPS, word: Word | None = None
    ) -> Entry:
        """Make the next attempt of an entry durable: a service that deduplicates, or an operator's word, allows it.

        `account` is the one that it is sent under now.
        Raises EscrowctlError 7 where somebody else has worked on the entry since it was read, and
        otherwise as `begin` does.
        """
        with self._bringing_to_life() as hold:
            self._require_unchanged(entry)
            if word is not None:
                self._record_word(entry, replace(entry.verdict, detail=RESENT_ON_WORD), word)
            intent = replace(entry.intent, account=account)
            self._check_guards(intent, but=entry.number)
            self._check_caps(intent, caps, but=entry)
            begun = self._attempt(intent, entry, request_id=request_id, hold=hold)
        return self._begun(begun)

    def decide(self, entry: Entry, verdict: Verdict, word: Word) -> Entry:
        """Record an operator's word on what became of an entry; raises EscrowctlError 7 as `begin_again` does."""
        with self._alone():
            self._require_unchanged(entry)
            self._record_word(entry, verdict, word)
        return self._reread(replace(entry, verdict=verdict))

    def settle_by_reading(self, entry: Entry, detail: str, *, result_id: str | None = None) -> Entry:
        """Record that a reading showed a write to be done, and what it made; raises as `decide` does."""
        known = entry.verdict
        # What was answered while it was unknown is no record of what was done.
        reply = known.reply if known.state is State.DONE else None
        made = result_id or known.result_id
        verdict = replace(known, state=State.DONE, detail=detail, result_id=made, reply=reply, verified=True)
        return self.settle_later(entry, verdict)

    def settle_later(self, entry: Entry, verdict: Verdict) -> Entry:
        """Record what an entry has become by evidence that came after its attempt; raises as `decide` does."""
        with self._alone():
            self._require_unchanged(entry)
            self.store.add_verdict(entry.number, verdict, at=timestamp(self._now()))
        return self._reread(replace(entry, verdict=verdict))

    def settle(self, entry: Entry, verdict: Verdict) -> Entry:
        """Record what became of an attempt of ours, durably, and give its liveness back.

        Raises EscrowctlError `ErrorCode.OUTCOME_UNKNOWN` where the attempt is not the entry's current one
        any more (fencing): what another process recorded since is not overwritten.
        """
        is_ours = True
        try:
            with self.store.transaction():
                is_ours = settle_if_current(self.store, entry, verdict, at=timestamp(self._now()))
        except EscrowctlError:
            # Where only the commit's very last sync failed, it stands all the same. Should a power failure
            # undo it, the entry is in flight again and reads as unknown: nothing is sent twice for it.
            if not is_on_record(self.store.path, entry, verdict):
                raise
        self._locks.free(entry.number)
        if not is_ours:
            raise guards.taken_over(entry, verdict)
        return self._reread(replace(entry, verdict=verdict, settled_at=timestamp(self._now())))

    @contextlib.contextmanager
    def exclusive(
        self, names: Iterable[str], *, monotonic: Callable[[], float], sleep: Callable[[float], None], patience: float
    ) -> Iterator[bool]:
        """Hold the locks on a thing under all its names across processes; yields whether somebody else had one first.

        Waits up to `patience` seconds, then raises EscrowctlError `busy` (exit 7).
        """
        waited, start = False, monotonic()
        held: list[int] = []
        try:
            # In one order for everybody, so that two who hold one each do not wait for each other.
            for place in sorted({place_of(name) for name in names}):
                while not self._hold(place):
                    waited = True
                    if monotonic() - start > patience:
                        raise guards.busy_elsewhere(patience)
                    sleep(_POLL_SECONDS)
                held.append(place)
            yield waited
        finally:
            for place in held:
                self._locks.free(place)

    def refuse_known(self, intent_like: Intent) -> None:
        """Raise what `begin` would raise for this intent's likeness and reference, recording nothing."""
        with self._alone():
            self._check_guards(intent_like)

    def find_sent(self, intent: Intent, *, repeats_throttled: bool) -> Entry | None:
        """Return the entry that this intent would be a repetition of, by its idempotency key, or None.

        Raises EscrowctlError 7 where the key stood for another request, is in flight elsewhere, or may be
        another account's.
        """
        with self._alone():
            return self._under_key(intent, repeats_throttled=repeats_throttled)[0]

    def keep_secret(self, entry: Entry, reply: JsonValue, *, resource_id: str | None) -> None:
        """Store the reply that holds the signing secret of an entry's endpoint; the journal itself never holds it."""
        signing_secrets.keep(self._folder, entry, reply, resource_id=resource_id)

    def secret_path(self, name: str) -> Path:
        """Return the file for the signing secret of an entry, such as `j12`; it need not exist."""
        return signing_secrets.path_of(self._folder, name)

    def find(self, number: int) -> Entry | None:
        """Return one entry with its history, or None."""
        return self._living(self.store.by_number(number))

    def require_whole(self) -> None:
        """Raise EscrowctlError (17) where the file is gone, or older than it was: what it lists is not all there is."""
        kept_beside = self.store.behind_head_file()
        if kept_beside is None:
            return
        if not self.is_there:
            raise damaged(self.store.path, "it is gone, and its head is still there")
        raise behind(self.store.path, kept_beside)

    @property
    def is_there(self) -> bool:
        """Whether there is a file; the first write makes it."""
        return self.store.path.exists()

    def select(self, selection: Selection) -> list[Entry]:
        """Return the entries of a selection, newest first; one in flight whose sender is gone is unknown."""
        return list(islice(self.all(selection), selection.limit))

    def all(self, selection: Selection) -> Iterator[Entry]:
        """Yield every entry of a selection, newest first, its limit the size of a page.

        No page stays open while anything else happens: an open reading would block writers.
        """
        before: int | None = None
        stored = replace(selection, states=_as_stored(selection.states))
        while page := self.store.select(stored, before=before):
            for entry in page:
                living = self._alive_or_unknown(entry)
                if not selection.states or living.state in selection.states:
                    yield living
            before = page[-1].number

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Look while nobody writes: between two looks at one thing it could change, and seem damaged or lost."""
        with self.store.transaction():
            self.store.check_tail()
            yield

    @contextlib.contextmanager
    def _bringing_to_life(self) -> Iterator[Callable[[int], None]]:
        """As `_alone`, with what holds the liveness of an entry; given back where the block is not committed."""
        held: list[int] = []

        def hold(number: int) -> None:
            if not self._hold(number):
                raise guards.taken(number)
            held.append(number)

        try:
            with self._alone():
                yield hold
        except BaseException:
            for number in held:
                self._locks.free(number)
            raise

    def _under_key(self, intent: Intent, *, repeats_throttled: bool) -> tuple[Entry | None, Entry | None]:
        """Return the entry that used an intent's idempotency key and stands for its result, or else one to send again.

        There are several only where another journal's was imported, or another account used the key.
        """
        found = self._alive(self.store.by_key(intent.names, intent.idempotency_key), intent)
        for earlier in found:
            guards.check_key(earlier, intent)
            if earlier.state is State.IN_FLIGHT:
                raise guards.busy(earlier)
            if not _may_be_sent_again(earlier, repeats_throttled=repeats_throttled):
                guards.check_account(earlier, intent)
                return earlier, None
        return None, found[0] if found else None

    def _attempt(self, intent: Intent, earlier: Entry | None, *, request_id: str, hold: Callable[[int], None]) -> Entry:
        """Record the next attempt, or the first, and return it. Only inside a transaction."""
        number = earlier.number if earlier else self.store.next_number()
        attempt = earlier.attempt + 1 if earlier else 1
        at = timestamp(self._now())
        # Before the commit: once others can see the entry, they can see that it is alive.
        hold(number)
        self.store.add_intent(number, intent, attempt=attempt, request_id=request_id, at=at)
        return Entry(number, intent, Verdict(State.IN_FLIGHT, ""), attempt, request_id, at)

    def _check_guards(self, intent: Intent, *, but: int | None = None) -> None:
        for number in intent.despite:
            if self.store.by_number(number) is None:
                raise guards.no_such_entry(number)
        alike = self._alive(self.store.alike(intent), intent, but=but)
        guards.check_alike(alike, intent, now=self._now())
        if intent.is_create and intent.reference is not None:
            under = self._alive(self.store.by_reference(intent.names, intent.reference), intent, but=but)
            guards.check_reference(under, intent, now=self._now())

    def _check_caps(self, intent: Intent, caps: Caps, *, but: Entry | None) -> None:
        """Count inside the transaction that reserves: two who ask at once cannot both be under the cap.

        `but` is the entry whose next attempt this is: it counts as often as it may have been applied before.
        """
        if not caps:
            return
        money = guards.require_countable(intent, caps)
        now = timestamp(self._now())
        since, number = f"{now[:10]}T00:00:00.000Z", but.number if but else None
        spent = sum_since(self.store, intent, money.currency, since=since, but=number)
        if but is not None and but.is_open:
            spent = sum_exactly((spent, *[money.amount] * count_resends(self.store, but.number)))
        cap = caps[money.currency]
        if sum_exactly((spent, money.amount)) > cap:
            ahead = find_ahead(self.store, intent, money.currency, since=since, now=now, but=number)
            raise guards.over_cap(intent, money, cap=cap, spent=spent, day=now[:10], ahead=ahead)

    def _require_unchanged(self, entry: Entry) -> None:
        """Refuse (7) to go on with an entry that is not as it was read."""
        now = self._living(self.store.by_number(entry.number))
        if now is None or (now.state, now.attempt) != (entry.state, entry.attempt):
            raise guards.changed(entry)

    def _record_word(self, entry: Entry, verdict: Verdict, word: Word) -> None:
        self.store.add_decision(
            entry.number, verdict, operator=word.operator, reason=word.reason, at=timestamp(self._now())
        )

    def _hold(self, place: int) -> bool:
        with _lockable(self._lock_path):
            return self._locks.hold(place)

    def _reread(self, entry: Entry) -> Entry:
        """Return an entry that was just committed as it is on record; where it cannot be read, as it was committed."""
        try:
            return self.store.by_number(entry.number) or entry
        except EscrowctlError:
            return entry

    def _begun(self, entry: Entry) -> Entry:
        """Return an intent as it is on record; raises EscrowctlError 7 where another process has overwritten it.

        That happens where one journal is reached by two paths that do not share locks.
        """
        found = self._reread(entry)
        if found.request_id != entry.request_id:
            self._locks.free(entry.number)
            raise guards.overwritten(entry)
        return found

    def _alive(self, entries: list[Entry], intent: Intent, *, but: int | None = None) -> list[Entry]:
        """Return the entries as they are now, without those of another account."""
        return [
            self._alive_or_unknown(entry)
            for entry in entries
            if entry.number != but and not intent.account.is_other(entry.intent.account)
        ]

    def _living(self, entry: Entry | None) -> Entry | None:
        return None if entry is None else self._alive_or_unknown(entry)

    def _alive_or_unknown(self, entry: Entry) -> Entry:
        """Read an entry in flight whose sender is gone as what it is: unknown."""
        with _lockable(self._lock_path):
            if entry.state is not State.IN_FLIGHT or self._locks.is_held(entry.number):
                return entry
        # Its sender may have settled it and let go since it was read: then it is what it is now.
        now = self.store.by_number(entry.number) or entry
        if now.state is not State.IN_FLIGHT or now.attempt != entry.attempt:
            return now
        return replace(entry, verdict=Verdict(State.UNKNOWN, LOST_IN_FLIGHT))


def _as_stored(states: tuple[State, ...]) -> tuple[State, ...]:
    """Return the states to look for: an entry in flight whose sender is gone is unknown, and stands as in flight."""
    return (*states, State.IN_FLIGHT) if State.UNKNOWN in states and State.IN_FLIGHT not in states else states


def _may_be_sent_again(entry: Entry, *, repeats_throttled: bool) -> bool:
    refused_for_now = repeats_throttled and entry.state is State.REFUSED and entry.verdict.may_repeat
    return entry.state in (State.NOT_SENT, State.NOT_APPLIED) or refused_for_now


@contextlib.contextmanager
def _lockable(path: Path) -> Iterator[None]:
    """Turn a lock that the system does not give into the error that nothing may be sent after."""
    try:
        yield
    except OSError as error:
        raise not_sent(
            ErrorCode.JOURNAL_UNUSABLE, f"the journal's lock file {path} cannot be used: {error.strerror or error}."
        ) from error
