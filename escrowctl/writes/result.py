"""The result of a write, and its error if it is not done: the cause, whether it was sent, and the next step."""

from typing import NamedTuple

from escrowctl.client.http import SUCCESS_STATUSES, Answer
from escrowctl.client.problem import REFUSAL_CODES, advise_connection, advise_refusal, is_html, list_reply_facts
from escrowctl.client.retry import describe_attempts
from escrowctl.config.service import Service
from escrowctl.contract.money import Money
from escrowctl.contract.operations import OPERATIONS_BY_NAME
from escrowctl.contract.record import KnownFields, Record
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Reason, not_sent
from escrowctl.journal.model import EXPORTED_IN_FLIGHT, LOST_IN_FLIGHT, RECORDED_LATER, Entry, Settlement, State
from escrowctl.writes.kinds import kind_of


class WriteResult(NamedTuple):
    """The result of a write.

    `entry` is its journal entry; None if a release was skipped, because the escrow is released already. `record` is
    the reply if it is JSON. `code` is the error code; None: the outcome determines the code. `replayed`: nothing
    was sent now, and this is the stored result of an earlier command. `answer` is the reply received now.

    `before` and `after` are the record as read before and after the write (None: not read). `why_unread` says why
    the second read failed. `verified`: the second read proves the write (True), does not prove it (False), or
    cannot tell (None).

    `failure` is an error to raise after the record is shown: the write is done, but the record differs from the
    request.
    """

    entry: Entry | None
    record: Record | None = None
    code: ErrorCode | None = None
    replayed: bool = False
    answer: Answer | None = None
    before: KnownFields | None = None
    after: Record | None = None
    why_unread: str | None = None
    verified: bool | None = None
    failure: EscrowctlError | None = None

    @property
    def sent_entry(self) -> Entry:
        """The entry of a write that was sent, now or by an earlier command. A skipped release has no entry."""
        assert self.entry is not None, "it was sent"
        return self.entry

    @property
    def status_before(self) -> str | None:
        """The status of the record before the write; None if it was not read."""
        return self.before.status if self.before else None

    @property
    def status_after(self) -> str | None:
        """The status of the record after the write; None if it was not read."""
        return self.after.known.status if self.after else None

    @property
    def why_no_status(self) -> str:
        """The reason why the status after the write is not known, as a clause."""
        if self.after is None:
            return "escrowctl could not read the escrow afterwards"
        return "escrowctl found no status in the escrow afterwards"


def write_failure(service: Service, result: WriteResult) -> EscrowctlError:
    """Return the error of a write that is not done, from its entry in the journal."""
    entry = result.sent_entry
    verb, settlement, facts = entry.intent.verb, entry.settlement, entry.facts
    if result.answer is not None:
        operation = OPERATIONS_BY_NAME.get(entry.intent.operation)
        may_hold_secret = operation is None or operation.is_confidential
        facts |= list_reply_facts(result.answer, entry.request_id, may_hold_secret=may_hold_secret)
    match entry.state:
        case State.NOT_SENT:
            return not_sent(
                ErrorCode.NO_CONNECTION,
                f"the {verb} failed{describe_attempts(entry.attempt)}: {settlement.detail}.",
                hint=advise_connection(service, settlement.detail),
                facts=facts,
            )
        case State.REFUSED:
            status = settlement.http_status or 0
            after = "" if result.replayed else describe_attempts(entry.attempt)
            return EscrowctlError(
                result.code or REFUSAL_CODES.get(status, ErrorCode.REFUSED),
                f"the service refused the {verb}{after}: {settlement.detail}.",
                effect=Effect.NOTHING_SENT_NOW if result.replayed else None,
                hint=advise_refusal(service, status, result.answer),
                outcome=Outcome.REFUSED,
                facts=facts,
                reason=Reason.REFUSED_EARLIER if result.replayed else Reason.REFUSED,
            )
        case _:
            conjunction = "but" if settlement.http_status is None else "and"
            # Its process ended while it was in flight, or an operator recorded it: perhaps no byte was sent.
            is_lost = settlement.detail in (LOST_IN_FLIGHT, EXPORTED_IN_FLIGHT, RECORDED_LATER)
            was_sent = f"the {verb} may have been sent" if is_lost else f"the {verb} was sent"
            unknown_sentence = kind_of(entry.intent.operation).unknown_sentence.format(id=entry.intent.resource_id)
            attempts_sentence = f"escrowctl made {entry.attempt} attempts with the same idempotency key."
            if entry.attempt == 1:
                attempts_sentence = f"escrowctl sent the {verb} once."
            sentences = unknown_sentence if result.replayed else f"{unknown_sentence} {attempts_sentence}"
            answer = result.answer if not service.sandbox else None
            is_web = answer is not None and answer.status in SUCCESS_STATUSES and is_html(answer)
            return EscrowctlError(
                ErrorCode.OUTCOME_UNKNOWN,
                f"{was_sent}, {conjunction} {settlement.detail}. {sentences}",
                effect=Effect.NOTHING_SENT_NOW if result.replayed else None,
                hint=advise_refusal(service, settlement.http_status or 0, result.answer),
                outcome=Outcome.UNKNOWN,
                # The key of a recorded write may be another one than it was sent with.
                facts=facts | ({"deduplicates": True} if service.deduplicates and not entry.is_recorded_later else {}),
                reason=Reason.WEB_PAGE if is_web else Reason.UNKNOWN,
            )


def recorded_error(entry: Entry, location: str) -> EscrowctlError:
    """Return the error of a write that was only recorded, in the journal at `location`, as perhaps sent before."""
    recorded = f"the {entry.intent.verb} is recorded as {entry.name} in {location}, with an unknown outcome"
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"{recorded}. {kind_of(entry.intent.operation).unknown_sentence.format(id=entry.intent.resource_id)}",
        effect=Effect.NOTHING_SENT_NOW,
        outcome=Outcome.UNKNOWN,
        facts=entry.facts,
        reason=Reason.UNKNOWN,
    )


def describe_differences(service: Service, record: Record | None, sent: Money | None) -> str | None:
    """Return a clause about a failed status, amount or currency of a created record; None if all are as sent."""
    if record is None:
        return None
    status = record.known.status
    failed = [f"its status is {status}"] if service.is_failed(status) else []
    return " and ".join([*failed, *list_money_differences(record.known, sent)]) or None


def list_money_differences(found: KnownFields, sent: Money | None) -> list[str]:
    """Return clauses about an amount or currency that differs from the request; case in currencies does not matter.

    An amount or currency that cannot be read counts as different.
    """
    differences = [*found.unreadable] if sent is not None else []
    if sent is not None and found.amount is not None and found.amount != sent.amount:
        differences.append(f"its amount is {found.amount} ({sent.amount} was sent)")
    if sent is not None and found.currency is not None and found.currency.casefold() != sent.currency.casefold():
        differences.append(f"its currency is {found.currency} ({sent.currency} was sent)")
    return differences


def not_recorded(entry: Entry, settlement: Settlement, error: EscrowctlError) -> EscrowctlError:
    """Return the error of a write whose outcome the journal could not store. The message has the outcome."""
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"{entry.intent.method} {entry.intent.url} is {settlement.description}. The journal could not record this "
        f"outcome: {error.message} Do not repeat the command until {entry.name} is resolved.",
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": settlement.http_status, "result_id": settlement.result_id},
        reason=Reason.UNKNOWN,
    )
