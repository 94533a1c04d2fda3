"""Settle a write whose outcome is unknown: by a read that proves it, otherwise by an operator's decision.

An equal amount proves no create: two identical escrows are legitimate. A 404 does not disprove a create: the service
may be behind. An idempotency key of escrowctl in a record proves its create. A status in the profile's
`status.released` proves a release. For all other writes, an operator records the answer of the service's support.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from escrowctl.client.http import SUCCESS_STATUSES
from escrowctl.client.pages import read_pages
from escrowctl.contract.identifiers import UUID_PATTERN
from escrowctl.contract.json import contains_text, encode
from escrowctl.contract.operations import CREATE_TRANSACTION, CREATE_WEBHOOK, Operation
from escrowctl.contract.record import KnownFields, Record, describe_money, describe_record
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Reason, not_sent
from escrowctl.journal.model import DECIDED_APPLIED, Entry, OperatorDecision, Selection, Settlement, confirmed_by_read
from escrowctl.writes.candidates import (
    Candidates,
    ListedRecords,
    describe_match,
    find_candidates,
    may_predate_write,
    predates_write,
    read_listed,
)
from escrowctl.writes.create import (
    Report,
    find_creator,
    find_misread_id,
    find_other_done_entry,
    misread_id_error,
    settle_by_reply,
)
from escrowctl.writes.inspection import RecordOptions, describe_pending_write, inspect, require_resendable
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteRequest, restore_request
from escrowctl.writes.result import WriteResult, describe_differences, list_money_differences
from escrowctl.writes.writer import Writer

DECIDED_NOT_APPLIED = "not applied, recorded by an operator"

_GENERATED_KEY_PATTERN = re.compile(UUID_PATTERN)
_MAX_SHOWN_RECORDS = 5


class Resolution(NamedTuple):
    """The result of a try to settle an entry by a read. `why_unsettled` says why it is unsettled; empty: it is settled.

    `entry` is the entry after the try. `likely_id` is the id of the only record that matches a create, without
    proof. `has_unreadable`: the list has records that escrowctl does not understand.
    """

    entry: Entry
    why_unsettled: str = ""
    likely_id: str | None = None
    has_unreadable: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the outcome is known now."""
        return not self.why_unsettled


class EntryResolver:
    """Resolves entries of one service. Calls `announce` before each read, and `report` with the read's result."""

    def __init__(self, writer: Writer, *, announce: Callable[[], None], report: Report) -> None:
        self._writer = writer
        self._service, self._reader, self._journal = writer.service, writer.reader, writer.journal
        self._announce = announce
        self._report = report

    def read_and_settle(self, entry: Entry, *, resend: bool = False) -> Resolution:
        """Read the records that a write may have changed, and settle the write if they prove it. Sends no write.

        `resend`: the caller sends the write again if it stays unknown. So raise EscrowctlError if a transaction
        cannot be read, and `EXPECTATION_FAILED` if the write must not be sent again. Raises `CHECK_FAILED` if the
        id in a create's reply is not that in the journal, and cannot be read or belongs to a different entry.
        """
        intent = entry.intent
        if intent.is_once_only:
            return self._settle_by_record(entry, resend=resend)
        if (reply_id := find_misread_id(entry, self._service)) is not None:
            if (settled := self._settle_by_reply(entry)) is None:
                raise misread_id_error(entry, reply_id)
            return settled
        if (listing := kind_of(intent.operation).listing) is not None:
            return self._settle_by_reply(entry) or self._settle_by_list(entry, listing)
        if intent.resource_id is not None:
            self._read_transaction(intent.resource_id, required=resend)
        return Resolution(entry, f"escrowctl cannot find out whether this {intent.verb} was applied.")

    def record_applied(
        self, entry: Entry, decision: OperatorDecision, *, resource_id: str | None, allow_unreadable: bool
    ) -> Entry:
        """Record the decision that an unknown write was applied, and return its entry. Reads the record first.

        `resource_id` is the id of a created record. Raises EscrowctlError if the record cannot be read;
        `EXPECTATION_FAILED` if the record differs from the request, `ALREADY_DONE` if a different entry created it.
        """
        intent = entry.intent
        if resource_id is not None:
            self._require_unused_id(entry, resource_id)
        record_id, verified = resource_id or intent.resource_id, False
        if record_id is not None and not allow_unreadable and intent.operation != CREATE_WEBHOOK.name:
            verified = self._require_as_sent(entry, record_id)
        status = entry.settlement.http_status
        settlement = Settlement(Outcome.DONE, DECIDED_APPLIED, status, result_id=resource_id, verified=verified)
        return self._journal.decide(entry, settlement, decision)

    def record_not_applied(
        self, entry: Entry, decision: OperatorDecision, *, allow_unreadable: bool, confirm: Callable[[list[str]], None]
    ) -> Entry:
        """Record the decision that a write was not applied, and return its entry. Reads the records first.

        The same command may then be sent again. `confirm` is called with the reasons against it, if any. Raises
        EscrowctlError `EXPECTATION_FAILED` if the record's status proves the write, the created record exists, or a
        record contains the idempotency key or the reference; another code if a read fails, or from `confirm`.
        """
        doubts = [f"recorded earlier: {entry.history[-1].detail}"] if entry.settlement.detail == DECIDED_APPLIED else []
        if (entry.settlement.http_status or 0) in SUCCESS_STATUSES:
            doubts.append(f"the service replied {entry.settlement.http_status} to the {entry.intent.verb}")
        if not allow_unreadable:
            proof, more = self._find_proof(entry)
            if proof is not None:
                raise _contradicted_decision(entry, "not applied", proof)
            doubts += more
        if doubts:
            confirm(doubts)
        return self._journal.decide(entry, Settlement(Outcome.UNKNOWN, DECIDED_NOT_APPLIED, not_applied=True), decision)

    def restore_sendable_request(self, entry: Entry) -> WriteRequest:
        """Return the request that an entry records.

        Raises EscrowctlError: `BAD_VALUE` if the journal has only hashes of the request, or the request contains
        the API key; `READ_ONLY` if the profile forbids writes.
        """
        request = restore_request(entry)
        if request is None:
            message = (
                f"{entry.name} contained a secret, and the journal stores only its hash: escrowctl cannot "
                f"send {entry.name} again."
            )
            raise not_sent(ErrorCode.BAD_VALUE, message, facts={"entry": entry.name}, reason=Reason.SECRET_NOT_STORED)
        self._writer.check(request)
        return request

    def send_again(
        self, entry: Entry, decision: OperatorDecision, *, has_asked: bool, allow_unreadable: bool
    ) -> WriteResult:
        """Send an unknown write once more, by an operator's decision; call inside `signals.held()`.

        `has_asked`: the operator was asked after `read_and_settle`, which took time. Raises EscrowctlError if the
        escrow changed or cannot be read, a guard or the profile refuses the write, or the journal cannot record it.
        Raises `Stopped` for a signal before the write can be applied.
        """
        request = self.restore_sendable_request(entry)
        with self._writer.hold_locks(request) as waited:
            may_have_changed = (has_asked or waited) and not allow_unreadable
            if may_have_changed and (resolution := self.read_and_settle(entry, resend=True)).is_settled:
                return WriteResult(resolution.entry)
            try:
                return self._writer.perform(request, entry_to_repeat=entry, decision=decision)
            except EscrowctlError as error:
                if error.code is ErrorCode.EARLIER_UNKNOWN:
                    # The identical write must be settled first: this command cannot allow a duplicate.
                    error.facts = {**error.facts, "duplicates": []}
                raise

    def _settle_by_record(self, entry: Entry, *, resend: bool) -> Resolution:
        """Read the record that a write changes, and settle the write if the status proves it."""
        resource_id, done = entry.intent.resource_id or "", entry.intent.past_participle
        kind = kind_of(entry.intent.operation)
        located = self._read_transaction(resource_id, required=resend)
        if located is None:
            return Resolution(entry, f"the service does not show whether {resource_id} was {done}.")
        if not kind.is_proven_by(located.status, self._service):
            if resend:
                require_resendable(self._service, entry, located)
            why = f"the {entry.intent.verb} may still be in progress"
            if not kind.proving_statuses(self._service):
                why = f"the profile does not say which status means {done} (status.{done})"
            return Resolution(entry, f"the service reports {resource_id} as {describe_record(located)}; {why}.")
        if (other := self._find_same_write(entry)) is not None:
            return Resolution(
                entry, f"the service reports {resource_id} as {located.status}, but {other.name} may have caused that."
            )
        settlement = confirmed_by_read(entry, f"the service reported {located.status}")
        return Resolution(self._journal.settle_later(entry, settlement))

    def _read_transaction(self, resource_id: str, *, required: bool) -> KnownFields | None:
        """Return a transaction as read now, and report it. If it cannot be read: raise if `required`, else None."""
        self._announce()
        if required:
            located = inspect(self._reader, self._service, resource_id, RecordOptions())
            self._report(f"{resource_id}: {describe_record(located)}")
            return located
        try:
            located = self._reader.read_escrow(resource_id).known
        except EscrowctlError as error:
            self._report(f"{resource_id} could not be read: {error.message}")
            return None
        self._report(f"{resource_id}: {describe_record(located)}")
        return located

    def _settle_by_reply(self, entry: Entry) -> Resolution | None:
        """Settle a create by the id in its stored reply; None if the reply does not prove it."""

        def report(message: str) -> None:
            self._announce()
            self._report(message)

        settled = settle_by_reply(entry, self._writer, report)
        return Resolution(settled.sent_entry) if settled else None

    def _read_list(self, entry: Entry, operation: Operation) -> ListedRecords:
        self._announce()
        listed = read_listed(entry, read_pages(self._reader, operation, for_write=True))
        count = f"{len(listed.records)} {'item' if len(listed.records) == 1 else 'items'}"
        more = "the service has more that escrowctl cannot read" if listed.has_more else "the list may be incomplete"
        self._report(f"GET {operation.path}: {count}; {more}")
        return listed

    def _settle_by_list(self, entry: Entry, listing: Operation) -> Resolution:
        """Look for the created record in a list, and settle the create if a record contains its idempotency key."""
        try:
            listed = self._read_list(entry, listing)
        except EscrowctlError as error:
            self._report(f"GET {listing.path} could not be read: {error.message}")
            return Resolution(entry, f"the service does not show whether the {entry.intent.verb} was applied.")
        if (created := self._find_by_key(entry, listed.records)) is not None:
            return Resolution(self._settle_as_created(entry, created))
        found = self._find_candidates(entry, listed)
        matching = found.matching
        for item in matching[:_MAX_SHOWN_RECORDS]:
            self._report(f"{item.known.id}: {describe_match(entry, item)}")
        if not matching:
            why = "but the list may be incomplete"
            if found.unread:
                why = f"but escrowctl cannot read the {found.field} of {found.unread} of {len(listed.records)} records"
            return Resolution(entry, f"nothing in the list matches, {why}.", has_unreadable=bool(found.unread))
        ids = ", ".join(str(item.known.id) for item in matching[:_MAX_SHOWN_RECORDS])
        ids += f" and {len(matching) - _MAX_SHOWN_RECORDS} more" if len(matching) > _MAX_SHOWN_RECORDS else ""
        verb = "matches" if len(matching) == 1 else "match"
        likely = matching[0].known.id if len(matching) == 1 and not may_predate_write(entry, matching[0]) else None
        return Resolution(entry, f"{ids} {verb} the request, but an equal {found.field} may be a coincidence.", likely)

    def _find_by_key(self, entry: Entry, items: Sequence[Record]) -> Record | None:
        """Return the one record that contains this create's idempotency key and matches the request.

        A key that is also in the request's body is no proof: the service may have copied the key from there.
        """
        key = entry.intent.idempotency_key
        with_key = [item for item in items if contains_text(item.value, key)]
        if len(with_key) != 1 or not _GENERATED_KEY_PATTERN.fullmatch(key) or key in (entry.intent.body or ""):
            return None
        located = with_key[0].known
        is_unusable = located.id is None or find_creator(self._writer, entry, located.id) is not None
        return None if is_unusable or list_money_differences(located, entry.intent.money) else with_key[0]

    def _settle_as_created(self, entry: Entry, found: Record) -> Entry:
        contains_key = f"{found.known.id} contains the idempotency key of this {entry.intent.verb}"
        self._report(f"the record {contains_key} ({describe_record(found.known)})")
        detail, created_id = f"{contains_key} (found in the list)", found.known.id
        settlement = entry.settlement._replace(
            outcome=Outcome.DONE, detail=detail, result_id=created_id, reply=None, verified=True
        )
        # A list of webhooks may show their secrets.
        if entry.intent.operation == CREATE_TRANSACTION.name:
            remark = describe_differences(self._service, found, entry.intent.money)
            settlement = settlement._replace(reply=encode(found.document), remark=remark)
        return self._journal.settle_later(entry, settlement)

    def _find_candidates(self, entry: Entry, listed: ListedRecords) -> Candidates:
        def is_taken(resource_id: str) -> bool:
            # An operator may have named the wrong id.
            other = find_creator(self._writer, entry, resource_id)
            return other is not None and other.settlement.detail != DECIDED_APPLIED

        return find_candidates(entry, listed, self._service, is_taken=is_taken)

    def _find_same_write(self, entry: Entry) -> Entry | None:
        """Return a second entry that is done and made the same change to the same record; None if there is none."""
        return find_other_done_entry(self._writer, entry, Selection(resource_id=entry.intent.resource_id))

    def _find_proof(self, entry: Entry) -> tuple[str | None, list[str]]:
        """Return a sentence that proves that a write was applied (None: no proof), and clauses that suggest it.

        Raises EscrowctlError if a record or list cannot be read.
        """
        intent = entry.intent
        kind = kind_of(intent.operation)
        if intent.is_once_only:
            resource_id = intent.resource_id or ""
            located = self._require_readable(resource_id)
            self._report(f"{resource_id}: {describe_record(located)}")
            if kind.is_proven_by(located.status, self._service):
                return f"the service reports {resource_id} as {located.status}.", []
            if kind.seems_done(located.status, self._service):
                return None, [f"the service reports {resource_id} as {located.status}"]
            return None, [describe_pending_write(entry, located)] * kind.is_pending(located.status, self._service)
        if (created_id := entry.settlement.result_id) is not None and intent.operation == CREATE_TRANSACTION.name:
            return f"{created_id} exists ({describe_record(self._require_readable(created_id))}).", []
        if (listing := kind.listing) is None:
            return None, []
        try:
            listed = self._read_list(entry, listing)
        except EscrowctlError as error:
            raise _unreadable_evidence(f"GET {listing.path}", error) from error
        own_texts = {"idempotency key": intent.idempotency_key}
        if self._service.reference_field is not None and intent.reference is not None:
            own_texts["reference"] = intent.reference
        for label, text in own_texts.items():
            if (found := next((item for item in listed.records if contains_text(item.value, text)), None)) is not None:
                return f"{found.known.id or 'a record'} contains the {label} of {entry.name}.", []
        return None, self._find_candidates(entry, listed).doubts

    def _require_unused_id(self, entry: Entry, resource_id: str) -> None:
        other = find_creator(self._writer, entry, resource_id) if entry.intent.has_no_id else None
        if other is not None:
            message = f"{other.name} already created {resource_id} ({other.settlement.detail})."
            raise not_sent(ErrorCode.ALREADY_DONE, message, effect=Effect.NOTHING_RECORDED)

    def _require_readable(self, resource_id: str) -> KnownFields:
        self._announce()
        try:
            return self._reader.read_escrow(resource_id).known
        except EscrowctlError as error:
            raise _unreadable_evidence(resource_id, error) from error

    def _require_as_sent(self, entry: Entry, resource_id: str) -> bool:
        """Return whether a record's status proves the write. Raises EscrowctlError if the record is not as sent."""
        found = self._require_readable(resource_id)
        self._require_unused_id(entry, found.id or resource_id)
        money = entry.intent.money
        if entry.intent.has_no_id and (differences := list_money_differences(found, money)):
            contradiction = f"{resource_id} differs from what was sent: {' and '.join(differences)}."
            raise _contradicted_decision(entry, "applied", contradiction)
        if entry.intent.has_no_id and predates_write(entry, found):
            contradiction = f"{resource_id} was created {found.created}, before {entry.name} was sent."
            raise _contradicted_decision(entry, "applied", contradiction)
        kind = kind_of(entry.intent.operation)
        is_proven = kind.is_proven_by(found.status, self._service)
        is_failed = entry.intent.is_once_only and kind.is_failed(found.status, self._service)
        if is_failed or (kind.proving_statuses(self._service) and not is_proven):
            done = entry.intent.past_participle
            contradiction = f"the service reports {resource_id} as {describe_record(found)}, not {done}."
            raise _contradicted_decision(entry, "applied", contradiction)
        is_as_sent = entry.intent.has_no_id and money is not None and describe_money(found) == str(money)
        as_sent = ", as sent" if is_as_sent else ""
        self._report(f"read {resource_id}: {describe_record(found)}{as_sent}")
        return is_proven and self._find_same_write(entry) is None


def _unreadable_evidence(source: str, error: EscrowctlError) -> EscrowctlError:
    return EscrowctlError(
        error.code,
        f"{source} could not be read: {error.message}",
        effect=Effect.NOTHING_RECORDED,
        facts=error.facts,
        reason=Reason.UNREADABLE_EVIDENCE,
    )


def _contradicted_decision(entry: Entry, decision: str, contradiction: str) -> EscrowctlError:
    message = f"{entry.name} cannot be recorded as {decision}: {contradiction}"
    return not_sent(ErrorCode.EXPECTATION_FAILED, message, effect=Effect.NOTHING_RECORDED)
