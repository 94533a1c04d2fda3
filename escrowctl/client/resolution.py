"""Settling a write whose outcome is unknown: by a reading where one can prove it, else by an operator's word.

Equal amounts prove nothing: two equal escrows are legitimate. A 404 proves nothing: the service may
be behind. What proves a create is our own idempotency key in a record; a release, the profile's word
for released. Everything else is for the service's desk to say and for an operator to record.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from escrowctl.client.inspection import describe, describe_money, is_another
from escrowctl.client.orders import Order, order_again
from escrowctl.client.reading import Reader
from escrowctl.client.records import Record
from escrowctl.client.writing import Writer, Written
from escrowctl.config.service import Service
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    GET_TRANSACTION,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    Operation,
)
from escrowctl.contract.record import Located
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending, bad_value
from escrowctl.journal.entries import Entry, Selection, State, Verdict
from escrowctl.journal.guards import describe as describe_intent
from escrowctl.journal.journal import Journal, Word

APPLIED_ON_WORD = "applied, on an operator's word"
NOT_APPLIED_ON_WORD = "not applied, on an operator's word"

NOTHING_RECORDED = "Nothing was recorded."
_OWN_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LISTINGS = {CREATE_TRANSACTION.name: LIST_TRANSACTIONS, CREATE_WEBHOOK.name: LIST_WEBHOOKS}
_MAX_FOUND = 5
_MAX_ENTRIES = 1000

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reading came to: the entry as it stands now, and a sentence for an entry still unknown."""

    entry: Entry
    sentence: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether nothing remains to be asked."""
        return self.entry.state is not State.UNKNOWN


class Resolution:
    """Settles entries of one service. `announce` is called before a reading, `tell` with what it showed."""

    def __init__(
        self,
        service: Service,
        *,
        reader: Reader,
        writer: Writer,
        journal: Journal,
        announce: Callable[[], None],
        tell: Tell,
    ) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._journal = journal
        self._announce = announce
        self._tell = tell

    def look(self, entry: Entry) -> Finding:
        """Read what can be read about an unknown write, and settle it where that proves it; sends no write."""
        match entry.intent.operation:
            case RELEASE_TRANSACTION.name:
                return self._look_at_release(entry)
            case CREATE_TRANSACTION.name:
                return self._look_for(entry, self._fits_transaction, "equal amount")
            case CREATE_WEBHOOK.name:
                return self._look_for(entry, self._fits_webhook, "equal URL")
            case _:
                if entry.intent.resource_id is not None:
                    self._read(entry.intent.resource_id)
                return Finding(entry, f"no reading can tell whether this {describe_intent(entry.intent)} was applied.")

    def record_applied(self, entry: Entry, word: Word, *, resource_id: str | None, unread: bool) -> Entry:
        """Record that an unknown write was applied; the record it made or changed is read first.

        `resource_id` is what a create made. Raises EscrowctlError: 3 where the record is not what was
        sent, 7 where it is what another entry made, and as a reading does where it cannot be read.
        """
        intent = entry.intent
        if resource_id is not None:
            self._refuse_taken(entry, resource_id)
        about = resource_id or intent.resource_id
        if about is not None and not unread and intent.operation != CREATE_WEBHOOK.name:
            self._require_as_sent(entry, about)
        verdict = replace(entry.verdict, state=State.DONE, detail=APPLIED_ON_WORD, result_id=resource_id)
        return self._journal.decide(entry, verdict, word)

    def record_not_applied(self, entry: Entry, word: Word, *, unread: bool) -> Entry:
        """Record that an unknown write was not applied: the same line may then be sent again.

        Raises EscrowctlError 3 where a release reads as released, or a record carries the key of a create.
        """
        proof = None if unread else self._find_proof(entry)
        if proof is not None:
            raise _contradicted(proof)
        verdict = Verdict(State.NOT_APPLIED, NOT_APPLIED_ON_WORD)
        return self._journal.decide(entry, verdict, word)

    def require_whole(self, entry: Entry) -> Order:
        """Return the order that an entry stands for; raises EscrowctlError (2) where the journal holds only hashes."""
        order = order_again(entry)
        if order is None:
            raise bad_value(
                f"{entry.name} cannot be sent again from the journal, which keeps no text of it that may be secret.",
                hint=f"repeat the command itself with --despite {entry.name}",
            )
        return order

    def send_again(self, entry: Entry, word: Word) -> Written:
        """Send an unknown write once more, on an operator's word; call inside `signals.held()`.

        Raises as `Writer.perform_again` does.
        """
        order = self.require_whole(entry)
        with self._writer.alone(order):
            return self._writer.perform_again(entry, order, word)

    # Reading

    def _find_proof(self, entry: Entry) -> str | None:
        """Return the sentence of a reading which shows that an unknown write was applied; None: nothing shows it."""
        intent = entry.intent
        if intent.operation == RELEASE_TRANSACTION.name:
            found = self._read(intent.resource_id or "")
            released = found is not None and self._service.means_released(found.located.status)
            return f"{intent.resource_id} reads as {found.located.status}." if found and released else None
        if (listing := _LISTINGS.get(intent.operation)) is None:
            return None
        carrying = [item for item in self._list(listing) or () if _carries(item.value, intent.idempotency_key)]
        return f"{carrying[0].located.id or 'a record'} carries the key of {entry.name}." if carrying else None

    def _look_at_release(self, entry: Entry) -> Finding:
        resource_id = entry.intent.resource_id or ""
        found = self._read(resource_id)
        if found is None:
            return Finding(entry, f"whether {resource_id} was released is not known.")
        if self._service.means_released(found.located.status):
            detail = f"read back as {found.located.status}"
            return Finding(self._writer.settle_by_reading(entry, detail))
        return Finding(entry, f"{resource_id} reads as {describe(found.located)}: a release may still be on its way.")

    def _read(self, resource_id: str) -> Record | None:
        self._announce()
        try:
            found = self._reader.read(GET_TRANSACTION, resource_id)
        except EscrowctlError as error:
            self._tell(f"{resource_id} could not be read: {_reason(error)}")
            return None
        if is_another(resource_id, found.located):
            self._tell(_says_another(resource_id, found.located))
            return None
        self._tell(f"{resource_id}: {describe(found.located)}")
        return found

    def _list(self, operation: Operation) -> Sequence[Record] | None:
        self._announce()
        try:
            items = self._reader.read_list(operation).items
        except EscrowctlError as error:
            self._tell(f"GET {operation.path} could not be read: {_reason(error)}")
            return None
        self._tell(
            f"GET {operation.path}: {len(items)} {'item' if len(items) == 1 else 'items'}, perhaps one page of several"
        )
        return items

    def _look_for(self, entry: Entry, fits: Callable[[Entry, Record], bool], how: str) -> Finding:
        """Look for what a create made among all that there is."""
        items = self._list(_LISTINGS[entry.intent.operation])
        if items is None:
            return Finding(entry, "whether it was applied is not known.")
        ours = [item for item in items if _carries(item.value, entry.intent.idempotency_key)]
        if len(ours) == 1 and ours[0].located.id is not None and _OWN_KEY.fullmatch(entry.intent.idempotency_key):
            return Finding(self._settle_as_made(entry, ours[0]))
        fitting = [item for item in items if fits(entry, item)]
        for item in fitting[:_MAX_FOUND]:
            self._tell(f"{item.located.id}: {describe(item.located)}" + _when(item))
        if not fitting:
            return Finding(entry, "nothing there fits it, which proves nothing: the list may be one page of several.")
        names = ", ".join(str(item.located.id) for item in fitting[:_MAX_FOUND])
        more = f" and {len(fitting) - _MAX_FOUND} more" if len(fitting) > _MAX_FOUND else ""
        verb = "fits" if len(fitting) == 1 else "fit"
        return Finding(entry, f"{names}{more} {verb}, but nothing there carries the key: an {how} proves nothing.")

    def _settle_as_made(self, entry: Entry, found: Record) -> Entry:
        read = f"{found.located.id} carries its key"
        self._tell(f"{read}: {describe(found.located)}")
        return self._writer.settle_by_reading(entry, f"{read}, by reading", result_id=found.located.id)

    def _fits_transaction(self, entry: Entry, item: Record) -> bool:
        money = entry.intent.money
        return money is not None and (item.located.amount, item.located.currency) == (money.amount, money.currency)

    def _fits_webhook(self, entry: Entry, item: Record) -> bool:
        field = self._service.webhooks.url_field
        value = item.value if isinstance(item.value, dict) else {}
        url = value.get(field)
        return isinstance(url, str) and f'"{url}"' in (entry.intent.body or "")

    # Checking a word

    def _refuse_taken(self, entry: Entry, resource_id: str) -> None:
        """Refuse an id that another entry of this journal made: one escrow cannot be what two creates made."""
        if not entry.intent.is_create:
            return
        for other in self._journal.select(Selection(_MAX_ENTRIES, resource_id=resource_id)):
            made = other.intent.is_create and other.state is State.DONE and other.intent.service == entry.intent.service
            if made and other.number != entry.number:
                raise EscrowctlError(
                    ErrorCode.ALREADY_DONE,
                    f"{resource_id} is what {other.name} made, {other.sent_at}. {NOTHING_RECORDED}",
                    sending=Sending.NOT_SENT,
                )

    def _require_as_sent(self, entry: Entry, resource_id: str) -> None:
        self._announce()
        try:
            found = self._reader.read(GET_TRANSACTION, resource_id).located
        except EscrowctlError as error:
            raise EscrowctlError(
                error.code,
                f"{resource_id} could not be read: {_reason(error)} {NOTHING_RECORDED}",
                hint="to record it without reading: --unread",
                facts=error.facts,
            ) from error
        if is_another(resource_id, found):
            raise _contradicted(f"{_says_another(resource_id, found)}.")
        self._refuse_taken(entry, found.id or resource_id)
        money = entry.intent.money
        if money is not None and entry.intent.is_create:
            if found.amount is not None and found.amount != money.amount:
                raise _contradicted(f"{resource_id} has amount {found.amount}, sent was {money.amount}.")
            if found.currency is not None and found.currency != money.currency:
                raise _contradicted(f"{resource_id} has currency {found.currency}, sent was {money.currency}.")
        as_sent = ", as sent" if money is not None and describe_money(found) == str(money) else ""
        self._tell(f"read {resource_id}: {describe(found)}{as_sent}")


def _contradicted(sentence: str) -> EscrowctlError:
    return EscrowctlError(
        ErrorCode.EXPECTATION_FAILED,
        f"{sentence} {NOTHING_RECORDED}",
        hint="to record it without reading: --unread",
        sending=Sending.NOT_SENT,
    )


def _says_another(resource_id: str, located: Located) -> str:
    return f"the record read as {resource_id} says that it is {located.id}"


def _reason(error: EscrowctlError) -> str:
    return error.message.removesuffix(NOTHING_SENT).removesuffix("It was only a read.").strip()


def _when(item: Record) -> str:
    return f", created {item.located.created}" if item.located.created else ""


def _carries(value: JsonValue, key: str) -> bool:
    """Whether a text of a record, at any depth, is the key."""
    match value:
        case str():
            return value == key
        case dict():
            return any(_carries(item, key) for item in value.values())
        case list():
            return any(_carries(item, key) for item in value)
        case _:
            return False
