"""The result of a create: the record that it created, and the differences from the request.

`writes.outcome` decides which reply proves a create. Here, a create is settled later by its stored reply, and a
done create is compared with the request.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from escrowctl.client.reader import Reader
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.json import JsonValue, carries, encode
from escrowctl.contract.money import Money
from escrowctl.contract.operations import CREATE_TRANSACTION, GET_TRANSACTION
from escrowctl.contract.readable import list_of
from escrowctl.contract.record import Located, Record, describe, find_id_pointers, is_another
from escrowctl.contract.redaction import STARS
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Stopped, not_sent
from escrowctl.journal.accounts import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Selection, Settlement, State
from escrowctl.journal.reasons import Reason
from escrowctl.signals import Signals
from escrowctl.writes.intents import account_of
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.outcome import NO_ID, Judgement, judge_stored
from escrowctl.writes.result import WriteResult, write_failure

_MOST_POINTERS = 20
_PAGE = 100

Report = Callable[[str], None]


def conclude_create(result: WriteResult, service: Service) -> WriteResult:
    """Return the result with the created record, and with the failure if it differs from the request.

    Raises EscrowctlError if it is not done; `CHECK_FAILED` if its stored reply names another id than was recorded.
    """
    entry = result.sent
    if entry.state is not State.DONE:
        raise _failure(service, result)
    if not kind_of(entry.intent.operation).needs_id:
        return result._replace(record=result.record or _stored_record(entry))
    if result.replayed and (named := find_other_id(entry, service)) is not None:
        raise misread(entry, named)
    return result._replace(record=_reply_with_id(result) or _stored_record(entry), failure=find_difference(entry))


def find_other_id(entry: Entry, service: Service) -> str | None:
    """Return the id that a create's stored reply names by the current profile, if another id was recorded."""
    settlement = entry.settlement
    if entry.state is not State.DONE or settlement.verified or settlement.result_id is None:
        return None
    judged = judge_stored(service, entry)
    named = judged.result_id if judged is not None else None
    # The stored reply has stars in place of an id that looks like a secret.
    return named if named is not None and named != settlement.result_id and STARS not in named else None


def misread(entry: Entry, named: str) -> EscrowctlError:
    """Return the error of a create that was recorded with another id than its reply names by today's profile."""
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"{entry.name} is recorded with the id {entry.settlement.result_id}, but by the profile's reply.id, the reply "
        f"names {named}.",
        effect=Effect.NOTHING_SENT_NOW,
        outcome=Outcome.DONE,
        facts=entry.facts | {"named": named},
        reason=Reason.ID_MISREAD,
    )


def read_accepted(
    result: WriteResult, service: Service, reader: Reader, journal: Journal, signals: Signals
) -> WriteResult:
    """Settle a create that was answered with 202 by one read; if that fails, it stays unknown."""
    try:
        settled = settle_by_reply(result.sent, service=service, reader=reader, journal=journal)
    except EscrowctlError:
        return result
    except Stopped as stopped:
        # The write's outcome is reported first, then the stop.
        signals.remember(stopped)
        return result
    return settled or result


def settle_by_reply(
    entry: Entry, *, service: Service, reader: Reader, journal: Journal, report: Report = lambda _: None
) -> WriteResult | None:
    """Settle a create if its stored reply, read with the current profile, names an id, and a read finds that record.

    None if not. `report` is called with the result. Raises EscrowctlError if the journal cannot record
    it, `BUSY` if another process has worked on the entry since.
    """
    judged = judge_stored(service, entry)
    made = judged.result_id if judged else None
    if judged is None or made is None:
        return None
    if (other := find_creator(journal, entry, made, account_of(service))) is not None:
        report(f"the stored reply has the id {made}, which {other.name} created")
        return None
    proven = prove(entry, judged, service, reader, report)
    if proven is None:
        return None
    return proven._replace(entry=journal.settle_later(entry, proven.sent.settlement))


def prove(
    entry: Entry, judged: Judgement, service: Service, reader: Reader, report: Report = lambda _: None
) -> WriteResult | None:
    """Return the result of a create whose stored reply names an id; None if no record with this id can be read.

    The reply alone is no proof: the pointer may be wrong, or the reply only accepts the request (202).
    """
    assert judged.result_id is not None, "it names an id"
    settlement = entry.settlement._replace(outcome=Outcome.DONE, result_id=judged.result_id)
    if (record := _read_created(judged.result_id, reader, report)) is None:
        return None
    detail = f"{settlement.http_status}; the service then reported {record.located.status or judged.result_id}"
    remark = describe_differences(service, record, entry.intent.money)
    reply = encode(record.document)
    settlement = settlement._replace(detail=detail, reply=reply, verified=True, remark=remark)
    return WriteResult(entry._replace(settlement=settlement), record)


def find_creator(journal: Journal, entry: Entry, resource_id: str, account: Account) -> Entry | None:
    """Return another create of the same kind that got this id: an escrow and an endpoint may share one."""
    return find_done(journal, entry, account, Selection(_PAGE, result_id=resource_id))


def find_done(journal: Journal, entry: Entry, account: Account, selection: Selection) -> Entry | None:
    """Return another entry of the same operation and service that is done and not certainly of another account."""
    found = journal.all(selection._replace(states=(State.DONE,), operations=(entry.intent.operation,)))
    return next((other for other in found if is_beside(entry, other, account)), None)


def is_beside(entry: Entry, other: Entry, account: Account | None = None) -> bool:
    """Whether another entry is done, of the same operation and service, and not certainly of another account.

    `account` is that of this run, if the entry may have another.
    """
    mine, theirs = entry.intent, other.intent
    return (
        (other.state, theirs.operation) == (State.DONE, mine.operation)
        and other.number != entry.number
        and mine.shares_service(theirs)
        and not (account or mine.account).is_other(theirs.account)
    )


def compare_ids(entry: Entry, settlement: Settlement, others: Iterable[Entry]) -> Settlement:
    """Return the settlement of a create, corrected if another create, one of `others`, got the same id.

    A reply with that id still proves that something was created: it gets a remark. A read of the record proves
    nothing: the outcome becomes unknown. Webhooks are not compared: a service may return an existing endpoint again.
    """
    made = settlement.result_id
    if settlement.state is not State.DONE or made is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return settlement
    other = next((one for one in others if one.settlement.result_id == made and is_beside(entry, one)), None)
    if other is None:
        return settlement
    if settlement.verified:
        why = f"{settlement.http_status}, but {made} is also the id of {other.name}"
        return settlement._replace(outcome=Outcome.UNKNOWN, detail=why, result_id=None, verified=False, remark=None)
    return settlement._replace(remark=" and ".join(filter(None, (settlement.remark, f"{other.name} has the same id"))))


def find_difference(entry: Entry) -> EscrowctlError | None:
    """Return the error `CHECK_FAILED` of a create whose record differs from the request; None if it does not."""
    made, remark = entry.settlement.result_id, entry.settlement.remark
    if made is None or remark is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return None
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"the service created {made}, but {remark}. Do not repeat the create.",
        outcome=Outcome.DONE,
        facts=entry.facts,
        reason=Reason.CREATED_OTHERWISE,
    )


def describe_differences(service: Service, record: Record | None, sent: Money | None) -> str | None:
    """Return how a created record differs from the request, and whether its status says that it failed; or None."""
    if record is None:
        return None
    status = record.located.status
    failed = [f"its status is {status}"] if service.is_failed(status) else []
    differences = [*failed, *list_differences(record.located, sent)]
    return " and ".join(differences) or None


def list_differences(found: Located, sent: Money | None) -> list[str]:
    """Return how a record's amount and currency differ from the request; case in currencies does not matter.

    An amount or currency that cannot be read counts as different.
    """
    differences = [*found.unreadable] if sent is not None else []
    if sent is not None and found.amount is not None and found.amount != sent.amount:
        differences.append(f"its amount is {found.amount} ({sent.amount} was sent)")
    if sent is not None and found.currency is not None and found.currency.casefold() != sent.currency.casefold():
        differences.append(f"its currency is {found.currency} ({sent.currency} was sent)")
    return differences


def _read_created(made: str, reader: Reader, report: Report) -> Record | None:
    """Return the record that has this id; None if it cannot be read."""
    try:
        record = reader.read(GET_TRANSACTION, parse_id(made), decides=True)
    except EscrowctlError as error:
        report(f"{made} (the id in the reply) could not be read: {error.message}")
        return None
    located = record.located
    # `reply.id` may point into a create's envelope, which the reply to a read does not have.
    is_shown = carries(record.document, made) if located.id is None else not is_another(made, located)
    is_shown = is_shown and list_of(record, noun=GET_TRANSACTION.noun) is None
    report(f"{made}: {describe(located)}" if is_shown else f"{made} was read, but the record does not have this id")
    return record if is_shown else None


def _failure(service: Service, result: WriteResult) -> EscrowctlError:
    """Return the error of a write that is not done; for an unproven create, with its reply and how to prove it."""
    entry = result.sent
    failure = write_failure(service, result)
    judged = judge_stored(service, entry) if entry.state is State.UNKNOWN else None
    if judged is None or result.record is None:
        return failure
    failure.facts = {"body": result.record.document, **failure.facts}
    pointer = _find_pointer(service, entry, result.record)
    if pointer is not None or (service.profile is not None and NO_ID in judged.detail):
        failure.facts = {**failure.facts, "pointer": pointer}
        failure.reason = Reason.ID_NOT_RECOGNISED
    return failure


def _find_pointer(service: Service, entry: Entry, record: Record) -> str | None:
    """Return the one pointer in a reply that would prove the create if the profile named it as the id."""
    noun = CREATE_TRANSACTION.noun
    pointers = find_id_pointers(record.value, noun=noun) or find_id_pointers(record.document, noun=noun)
    # Each try parses the complete reply again: stop at the second pointer that proves it.
    tried = (pointer for pointer in islice(pointers, _MOST_POINTERS) if _would_prove(service, entry, pointer))
    proving = list(islice(tried, 2))
    return proving[0] if len(proving) == 1 else None


def _would_prove(service: Service, entry: Entry, pointer: str) -> bool:
    pointed = service._replace(pointers=service.pointers._replace(id=pointer))
    judged = judge_stored(pointed, entry)
    return judged is not None and judged.result_id is not None


def _reply_with_id(result: WriteResult) -> Record | None:
    """Return a create's record with the id that the journal has: only a Location header may have named it."""
    record, made = result.record, result.sent.settlement.result_id
    if record is None or made is None:
        return record
    value = record.value
    if record.located.id is None and isinstance(value, dict):
        value = {"id": made, **value}
    return record._replace(value=value, located=record.located._replace(id=made))


def _stored_record(entry: Entry) -> Record:
    """Return a record with only the id that the journal has; the reply is not stored."""
    made = entry.settlement.result_id
    if made is None and entry.intent.operation == CREATE_TRANSACTION.name:
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"{entry.name} is done ({entry.settlement.detail}), but the journal does not know the id of its escrow.",
            facts=entry.facts,
        )
    known: JsonValue = {"id": made}
    return Record(known, known, Located(id=made))
