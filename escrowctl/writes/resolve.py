"""Settle a write whose outcome is unknown: by a read that proves it, otherwise by an operator's decision.

Equal amounts prove nothing: two identical escrows are legitimate. A 404 proves nothing: the service may be behind.
Our own idempotency key in a record proves a create; a status in the profile's `status.released` proves a release. For
everything else, an operator asks the service's support and records the answer.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from escrowctl.client.http import SUCCESS
from escrowctl.client.pages import read_pages
from escrowctl.client.reader import Reader
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import UUID
from escrowctl.contract.json import carries, encode
from escrowctl.contract.operations import CREATE_TRANSACTION, CREATE_WEBHOOK, Operation
from escrowctl.contract.record import Located, Record, describe, describe_money
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, not_sent
from escrowctl.journal.model import DECIDED_APPLIED, Entry, OperatorDecision, Selection, Settlement, settled_by_reading
from escrowctl.journal.reasons import Reason
from escrowctl.writes.candidates import Candidates, Listed, collect, compare, may_be_older, say, was_there_before
from escrowctl.writes.create import (
    describe_differences,
    find_creator,
    find_done,
    find_other_id,
    list_differences,
    misread,
    settle_by_reply,
)
from escrowctl.writes.inspection import inspect, require_resendable, say_pending
from escrowctl.writes.intents import account_of
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import RecordOptions, WriteRequest, request_again
from escrowctl.writes.result import WriteResult
from escrowctl.writes.writer import Writer

DECIDED_NOT_APPLIED = "not applied, recorded by an operator"

_OWN_KEY = re.compile(UUID)
_MAX_FOUND = 5
_PAGE = 100

Report = Callable[[str], None]


class Resolution(NamedTuple):
    """The result of a read: the current entry, and a sentence if the read settles nothing.

    `likely` is the id of the one record that matches a create, which proves nothing. `is_unread`: the list has
    records that escrowctl does not understand.
    """

    entry: Entry
    sentence: str = ""
    likely: str | None = None
    is_unread: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the outcome is known now."""
        return not self.sentence


class EntryResolver:
    """Resolves entries of one service. `announce` is called before a read, `report` with its result."""

    def __init__(
        self, service: Service, *, reader: Reader, writer: Writer, announce: Callable[[], None], report: Report
    ) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._journal = writer.journal
        self._announce = announce
        self._report = report

    def look(self, entry: Entry, *, resend: bool = False) -> Resolution:
        """Read the records that an unknown write may have changed, and settle it if they prove it; sends no write.

        `resend`: the write is to be sent again if nothing is proven. Then a transaction must be readable and unchanged:
        raises EscrowctlError if it cannot be read, `EXPECTATION_FAILED` if it must not be sent again. Raises
        `CHECK_FAILED` if a create's reply names another id than was recorded, and that id cannot be read or belongs to
        another entry.
        """
        intent = entry.intent
        if intent.is_once_only:
            return self._look_at_record(entry, resend=resend)
        if (named := find_other_id(entry, self._service)) is not None:
            if (settled := self._judge_reply(entry)) is None:
                raise misread(entry, named)
            return settled
        if (listing := kind_of(intent.operation).listing) is not None:
            return self._judge_reply(entry) or self._look_for(entry, listing)
        if intent.resource_id is not None:
            self._read(intent.resource_id, resend=resend)
        return Resolution(entry, f"escrowctl cannot find out whether this {intent.verb} was applied.")

    def record_applied(
        self, entry: Entry, decision: OperatorDecision, *, resource_id: str | None, allow_unreadable: bool
    ) -> Entry:
        """Record that an unknown write was applied; the record it created or changed is read first.

        `resource_id` is the id of the created record. Raises EscrowctlError if the record cannot be read;
        `EXPECTATION_FAILED` if it differs from the request, `ALREADY_DONE` if another entry created it.
        """
        intent = entry.intent
        if resource_id is not None:
            self._refuse_taken(entry, resource_id)
        about, verified = resource_id or intent.resource_id, False
        if about is not None and not allow_unreadable and intent.operation != CREATE_WEBHOOK.name:
            verified = self._require_as_sent(entry, about)
        status = entry.settlement.http_status
        settlement = Settlement(Outcome.DONE, DECIDED_APPLIED, status, result_id=resource_id, verified=verified)
        return self._journal.decide(entry, settlement, decision)

    def record_not_applied(
        self, entry: Entry, decision: OperatorDecision, *, allow_unreadable: bool, confirm: Callable[[list[str]], None]
    ) -> Entry:
        """Record that a write was not applied: an unknown write, or a done write that no read verified.

        The same command may then be sent again; `confirm` is called first with the doubts, if any, as sentences. Raises
        EscrowctlError: `EXPECTATION_FAILED` if the record's status proves the write, the record of a create can be
        read, or a record contains the idempotency key or the reference of a create; another code if a read fails, or
        from `confirm`.
        """
        doubts = [f"earlier: {entry.history[-1].detail}"] if entry.settlement.detail == DECIDED_APPLIED else []
        if (entry.settlement.http_status or 0) in SUCCESS:
            doubts.append(f"the service replied {entry.settlement.http_status} to the {entry.intent.verb}")
        if not allow_unreadable:
            proof, more = self._find_proof(entry)
            if proof is not None:
                raise _contradicted(entry, "not applied", proof)
            doubts += more
        if doubts:
            confirm(doubts)
        settlement = Settlement(Outcome.UNKNOWN, DECIDED_NOT_APPLIED, not_applied=True)
        return self._journal.decide(entry, settlement, decision)

    def require_sendable(self, entry: Entry) -> WriteRequest:
        """Return the request that an entry records.

        Raises EscrowctlError: `BAD_VALUE` if the journal has only hashes of it, or it holds the API key; `READ_ONLY` if
        the profile forbids writes.
        """
        request = request_again(entry)
        if request is None:
            raise not_sent(
                ErrorCode.BAD_VALUE,
                f"{entry.name} contained a secret, and the journal stores only its hash: escrowctl cannot "
                f"send {entry.name} again.",
                facts={"entry": entry.name},
                reason=Reason.SECRET_NOT_STORED,
            )
        self._writer.check(request)
        return request

    def send_again(
        self, entry: Entry, decision: OperatorDecision, *, asked: bool, allow_unreadable: bool
    ) -> WriteResult:
        """Send an unknown write once more, by an operator's decision; call inside `signals.held()`.

        `asked`: time has passed since `look`. Raises EscrowctlError if the escrow changed or cannot be read, a guard or
        the profile refuses the write, or the journal cannot record it; `Stopped` for a signal before it can be applied.
        """
        request = self.require_sendable(entry)
        with self._writer.exclusive(request) as waited:
            if (asked or waited) and not allow_unreadable and (resolution := self.look(entry, resend=True)).is_settled:
                return WriteResult(resolution.entry)
            try:
                return self._writer.perform(request, again=entry, decision=decision)
            except EscrowctlError as error:
                if error.code is ErrorCode.EARLIER_UNKNOWN:
                    # The identical write must be settled first: this command cannot allow a duplicate.
                    error.facts = {**error.facts, "duplicates": []}
                raise

    def _look_at_record(self, entry: Entry, *, resend: bool) -> Resolution:
        """Settle a write on one record by that record's status."""
        resource_id, done, kind = entry.intent.resource_id or "", entry.intent.done, kind_of(entry.intent.operation)
        located = self._read(resource_id, resend=resend)
        if located is None:
            return Resolution(entry, f"the service does not show whether {resource_id} was {done}.")
        if not kind.is_proven_by(located.status, self._service):
            if resend:
                require_resendable(self._service, entry, located)
            why = (
                f"the {entry.intent.verb} may still be in progress"
                if kind.proving_statuses(self._service)
                else f"the profile does not say which status means {done} (status.{done})"
            )
            return Resolution(entry, f"the service reports {resource_id} as {describe(located)}; {why}.")
        if (other := self._find_same(entry)) is not None:
            return Resolution(
                entry, f"the service reports {resource_id} as {located.status}, but {other.name} may have caused that."
            )
        settlement = settled_by_reading(entry, f"the service reported {located.status}")
        return Resolution(self._journal.settle_later(entry, settlement))

    def _read(self, resource_id: str, *, resend: bool) -> Located | None:
        """Read a transaction and report it; None if it cannot be read."""
        self._announce()
        if resend:
            located = inspect(self._reader, self._service, resource_id, RecordOptions())
            self._report(f"{resource_id}: {describe(located)}")
            return located
        try:
            located = self._reader.read_escrow(resource_id).located
        except EscrowctlError as error:
            self._report(f"{resource_id} could not be read: {error.message}")
            return None
        self._report(f"{resource_id}: {describe(located)}")
        return located

    def _judge_reply(self, entry: Entry) -> Resolution | None:
        """Settle a create by its stored reply if the profile now finds an id in it."""

        def report(message: str) -> None:
            self._announce()
            self._report(message)

        settled = settle_by_reply(
            entry, service=self._service, reader=self._reader, journal=self._journal, report=report
        )
        return Resolution(settled.sent) if settled else None

    def _list(self, entry: Entry, operation: Operation) -> Listed:
        self._announce()
        listed = collect(entry, read_pages(self._reader, operation, decides=True))
        count = f"{len(listed.items)} {'item' if len(listed.items) == 1 else 'items'}"
        more = "the service has more, but escrowctl cannot read them" if listed.is_cut else "the list may be incomplete"
        self._report(f"GET {operation.path}: {count}; {more}")
        return listed

    def _look_for(self, entry: Entry, listing: Operation) -> Resolution:
        """Look for the created record in the list of all records."""
        try:
            listed = self._list(entry, listing)
        except EscrowctlError as error:
            self._report(f"GET {listing.path} could not be read: {error.message}")
            return Resolution(entry, f"the service does not show whether the {entry.intent.verb} was applied.")
        if (made := self._made_by(entry, listed.items)) is not None:
            return Resolution(self._settle_as_made(entry, made))
        found = self._compare(entry, listed)
        fitting = found.matching
        for item in fitting[:_MAX_FOUND]:
            self._report(f"{item.located.id}: {say(entry, item)}")
        if not fitting:
            why = "but it may be incomplete"
            if found.unread:
                why = f"but escrowctl can read no {found.what} in {found.unread} of its {len(listed.items)} records"
            return Resolution(entry, f"nothing in the list matches, {why}.", is_unread=bool(found.unread))
        names = ", ".join(str(item.located.id) for item in fitting[:_MAX_FOUND])
        more = f" and {len(fitting) - _MAX_FOUND} more" if len(fitting) > _MAX_FOUND else ""
        verb = "matches" if len(fitting) == 1 else "match"
        likely = fitting[0].located.id if len(fitting) == 1 and not may_be_older(entry, fitting[0]) else None
        return Resolution(entry, f"{names}{more} {verb} the request, but an equal {found.what} proves nothing.", likely)

    def _made_by(self, entry: Entry, items: Sequence[Record]) -> Record | None:
        """Return the one record that contains this create's idempotency key and matches the request.

        A key that is also in the request's body proves nothing: the service may have copied it from there.
        """
        key = entry.intent.idempotency_key
        carrying = [item for item in items if carries(item.value, key)]
        if len(carrying) != 1 or not _OWN_KEY.fullmatch(key) or key in (entry.intent.body or ""):
            return None
        located = carrying[0].located
        taken = located.id is None or self._find_creator(entry, located.id) is not None
        return None if taken or list_differences(located, entry.intent.money) else carrying[0]

    def _settle_as_made(self, entry: Entry, found: Record) -> Entry:
        read = f"{found.located.id} contains the idempotency key of this {entry.intent.verb}"
        self._report(f"the record {read} ({describe(found.located)})")
        detail, made = f"{read} (found in the list)", found.located.id
        settlement = entry.settlement._replace(
            outcome=Outcome.DONE, detail=detail, result_id=made, reply=None, verified=True
        )
        # A list of webhooks may show their secrets.
        if entry.intent.operation == CREATE_TRANSACTION.name:
            remark = describe_differences(self._service, found, entry.intent.money)
            settlement = settlement._replace(reply=encode(found.document), remark=remark)
        return self._journal.settle_later(entry, settlement)

    def _compare(self, entry: Entry, listed: Listed) -> Candidates:
        return compare(entry, listed, self._service, is_taken=lambda one: self._find_creator(entry, one) is not None)

    def _find_same(self, entry: Entry) -> Entry | None:
        """Return another entry that did the same to this record, which is done only once."""
        selection = Selection(_PAGE, resource_id=entry.intent.resource_id)
        return find_done(self._journal, entry, account_of(self._service), selection)

    def _find_creator(self, entry: Entry, resource_id: str) -> Entry | None:
        return find_creator(self._journal, entry, resource_id, account_of(self._service))

    def _find_proof(self, entry: Entry) -> tuple[str | None, list[str]]:
        """Return a sentence that proves that a write was applied (None: no proof), and other signs of it.

        Raises EscrowctlError if a record or list cannot be read.
        """
        intent = entry.intent
        kind = kind_of(intent.operation)
        if intent.is_once_only:
            resource_id = intent.resource_id or ""
            located = self._require_readable(resource_id)
            self._report(f"{resource_id}: {describe(located)}")
            if kind.is_proven_by(located.status, self._service):
                return f"the service reports {resource_id} as {located.status}.", []
            if kind.seems_done(located.status, self._service):
                return None, [f"the service reports {resource_id} as {located.status}"]
            return None, [say_pending(entry, located)] * self._service.is_pending(located.status)
        if (made := entry.settlement.result_id) is not None and intent.operation == CREATE_TRANSACTION.name:
            return f"{made} exists ({describe(self._require_readable(made))}).", []
        if (listing := kind.listing) is None:
            return None, []
        try:
            listed = self._list(entry, listing)
        except EscrowctlError as error:
            raise _unreadable(f"GET {listing.path}", error) from error
        named = {"idempotency key": intent.idempotency_key}
        if self._service.reference_field is not None and intent.reference is not None:
            named["reference"] = intent.reference
        for what, text in named.items():
            if (found := next((item for item in listed.items if carries(item.value, text)), None)) is not None:
                return f"{found.located.id or 'a record'} contains the {what} of {entry.name}.", []
        return None, self._compare(entry, listed).doubts

    def _refuse_taken(self, entry: Entry, resource_id: str) -> None:
        other = self._find_creator(entry, resource_id) if entry.intent.has_no_id else None
        if other is not None:
            raise not_sent(
                ErrorCode.ALREADY_DONE,
                f"{other.name} already has the id {resource_id} ({other.sent_at}).",
                effect=Effect.NOTHING_RECORDED,
            )

    def _require_readable(self, resource_id: str) -> Located:
        self._announce()
        try:
            return self._reader.read_escrow(resource_id).located
        except EscrowctlError as error:
            raise _unreadable(resource_id, error) from error

    def _require_as_sent(self, entry: Entry, resource_id: str) -> bool:
        """Return whether a status proves the write; raises EscrowctlError if the record differs from the request."""
        found = self._require_readable(resource_id)
        self._refuse_taken(entry, found.id or resource_id)
        money = entry.intent.money
        if entry.intent.has_no_id and (differences := list_differences(found, money)):
            what = f"{resource_id} differs from what was sent: {' and '.join(differences)}."
            raise _contradicted(entry, "applied", what)
        if entry.intent.has_no_id and was_there_before(entry, found):
            what = f"{resource_id} was created {found.created}, before {entry.name} was sent."
            raise _contradicted(entry, "applied", what)
        kind = kind_of(entry.intent.operation)
        is_proven = kind.is_proven_by(found.status, self._service)
        is_failed = entry.intent.is_once_only and self._service.is_failed(found.status)
        if is_failed or (kind.proving_statuses(self._service) and not is_proven):
            what = f"the service reports {resource_id} as {describe(found)}, not {entry.intent.done}."
            raise _contradicted(entry, "applied", what)
        as_sent = (
            ", as sent" if entry.intent.has_no_id and money is not None and describe_money(found) == str(money) else ""
        )
        self._report(f"read {resource_id}: {describe(found)}{as_sent}")
        return is_proven and self._find_same(entry) is None


def _unreadable(what: str, error: EscrowctlError) -> EscrowctlError:
    return EscrowctlError(
        error.code,
        f"{what} could not be read: {error.message}",
        effect=Effect.NOTHING_RECORDED,
        facts=error.facts,
        reason=Reason.UNREADABLE_EVIDENCE,
    )


def _contradicted(entry: Entry, decision: str, why: str) -> EscrowctlError:
    message = f"{entry.name} cannot be recorded as {decision}: {why}"
    return not_sent(ErrorCode.EXPECTATION_FAILED, message, effect=Effect.NOTHING_RECORDED)
