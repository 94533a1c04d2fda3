"""The result of a create: the record that it created, and the differences from the request.

`writes.outcome` decides which reply proves a create. This module settles a create later by its stored reply, and
compares a done create with its request.
"""

from collections.abc import Callable
from itertools import islice

from escrowctl.client.reader import Reader
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.json import JsonValue, contains_text, encode
from escrowctl.contract.operations import CREATE_TRANSACTION, GET_TRANSACTION
from escrowctl.contract.readable import find_list_items
from escrowctl.contract.record import KnownFields, Record, describe_record, find_id_pointers, has_other_id
from escrowctl.contract.redaction import STARS
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Reason, Stopped, not_sent
from escrowctl.journal.guards import is_other_done
from escrowctl.journal.model import Entry, Selection, State
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.outcome import NO_ID_FOUND, judge_stored_reply
from escrowctl.writes.requests import account_of
from escrowctl.writes.result import WriteResult, describe_differences, write_failure
from escrowctl.writes.writer import Writer

_MAX_POINTERS = 20

Report = Callable[[str], None]


def conclude_create(result: WriteResult, service: Service) -> WriteResult:
    """Return the result with the created record, and with a `failure` if the record differs from the request.

    Raises EscrowctlError if the create is not done; `CHECK_FAILED` if its reply has not the id in the journal.
    """
    entry = result.sent_entry
    if entry.state is not State.DONE:
        raise _make_create_error(service, result)
    if not kind_of(entry.intent.operation).needs_id:
        return result._replace(record=result.record or _restore_record(entry))
    if result.replayed and (reply_id := find_misread_id(entry, service)) is not None:
        raise misread_id_error(entry, reply_id)
    return result._replace(
        record=_add_created_id(result) or _restore_record(entry), failure=find_difference_error(entry)
    )


def find_misread_id(entry: Entry, service: Service) -> str | None:
    """Return the id that the profile now finds in a create's stored reply, if it is not the id in the journal."""
    settlement = entry.settlement
    if entry.state is not State.DONE or settlement.verified or settlement.result_id is None:
        return None
    judged = judge_stored_reply(service, entry)
    reply_id = judged.result_id if judged is not None else None
    # The stored reply has stars in place of an id that looks like a secret.
    return reply_id if reply_id is not None and reply_id != settlement.result_id and STARS not in reply_id else None


def misread_id_error(entry: Entry, reply_id: str) -> EscrowctlError:
    """Return the error of a create if `reply_id`, the id in its stored reply, is not the id in the journal."""
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"{entry.name} is recorded with the id {entry.settlement.result_id}, but the profile's reply.id finds "
        f"{reply_id} in the stored reply.",
        effect=Effect.NOTHING_SENT_NOW,
        outcome=Outcome.DONE,
        facts=entry.facts | {"named": reply_id},
        reason=Reason.ID_MISREAD,
    )


def settle_accepted(result: WriteResult, writer: Writer) -> WriteResult:
    """Settle an accepted create (202) by one read of its escrow. If the read fails, the create stays unknown."""
    try:
        settled = settle_by_reply(result.sent_entry, writer)
    except EscrowctlError:
        return result
    except Stopped as stopped:
        # The write's outcome is reported first, then the stop.
        writer.signals.remember(stopped)
        return result
    return settled or result


def settle_by_reply(entry: Entry, writer: Writer, report: Report = lambda _: None) -> WriteResult | None:
    """Settle a create by the id in its stored reply, and return the result; None if the reply does not prove it.

    The current profile must find the id, and a read must find that record: the pointer to the id may be wrong, or a
    202 only accepts the request. `report` is called with what was read. Raises EscrowctlError if the journal cannot
    record this; `BUSY` if another process has changed the entry since.
    """
    service = writer.service
    judged = judge_stored_reply(service, entry)
    created_id = judged.result_id if judged else None
    if created_id is None:
        return None
    if (other := find_creator(writer, entry, created_id)) is not None:
        report(f"the stored reply has the id {created_id}, but {other.name} created that record")
        return None
    if (record := _read_created(created_id, writer.reader, report)) is None:
        return None
    settlement = entry.settlement._replace(
        outcome=Outcome.DONE,
        detail=f"{entry.settlement.http_status}; the service then reported {record.known.status or created_id}",
        result_id=created_id,
        reply=encode(record.document),
        verified=True,
        remark=describe_differences(service, record, entry.intent.money),
    )
    return WriteResult(writer.journal.settle_later(entry, settlement), record)


def find_creator(writer: Writer, entry: Entry, resource_id: str) -> Entry | None:
    """Return a second entry that created this id by the same operation. An escrow and an endpoint may share ids."""
    return find_other_done_entry(writer, entry, Selection(result_ids=(resource_id,)))


def find_other_done_entry(writer: Writer, entry: Entry, selection: Selection) -> Entry | None:
    """Return an entry in `selection`, except `entry`, for which `is_other_done` is true; None if there is none."""
    selection = selection._replace(states=(State.DONE,), operations=(entry.intent.operation,))
    found, account = writer.journal.select_all(selection), account_of(writer.service)
    return next((other for other in found if is_other_done(entry, other, account)), None)


def find_difference_error(entry: Entry) -> EscrowctlError | None:
    """Return the error `CHECK_FAILED` if the record of a create differs from the request; else None."""
    created_id, remark = entry.settlement.result_id, entry.settlement.remark
    if created_id is None or remark is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return None
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"the service created {created_id}, but {remark}. Do not repeat the create.",
        outcome=Outcome.DONE,
        facts=entry.facts,
        reason=Reason.CREATED_DIFFERENTLY,
    )


def _read_created(created_id: str, reader: Reader, report: Report) -> Record | None:
    """Return the record with this id, as read now; None if it cannot be read, or has a different id."""
    try:
        record = reader.read(GET_TRANSACTION, parse_id(created_id), for_write=True)
    except EscrowctlError as error:
        report(f"{created_id} (the id in the reply) could not be read: {error.message}")
        return None
    located = record.known
    # `reply.id` may point into a create's envelope, which the reply to a read does not have.
    has_id = contains_text(record.document, created_id) if located.id is None else not has_other_id(created_id, located)
    has_id = has_id and find_list_items(record, noun=GET_TRANSACTION.noun) is None
    report(
        f"{created_id}: {describe_record(located)}"
        if has_id
        else f"{created_id} was read, but its record lacks this id"
    )
    return record if has_id else None


def _make_create_error(service: Service, result: WriteResult) -> EscrowctlError:
    """Return the error of a create that is not done. Its facts have a success reply without proof."""
    entry = result.sent_entry
    failure = write_failure(service, result)
    judged = judge_stored_reply(service, entry) if entry.state is State.UNKNOWN else None
    if judged is None or result.record is None:
        return failure
    failure.facts = {"body": result.record.document, **failure.facts}
    pointer = _find_proving_pointer(service, entry, result.record)
    if pointer is not None or (service.profile is not None and NO_ID_FOUND in judged.detail):
        failure.facts = {**failure.facts, "pointer": pointer}
        failure.reason = Reason.ID_NOT_RECOGNISED
    return failure


def _find_proving_pointer(service: Service, entry: Entry, record: Record) -> str | None:
    """Return the one JSON Pointer that would prove a create if it were the profile's `reply.id`; else None."""
    noun = CREATE_TRANSACTION.noun
    pointers = find_id_pointers(record.value, noun=noun) or find_id_pointers(record.document, noun=noun)
    proving: str | None = None
    for pointer in islice(pointers, _MAX_POINTERS):
        judged = judge_stored_reply(service._replace(pointers=service.pointers._replace(id=pointer)), entry)
        if judged is not None and judged.result_id is not None:
            # Each try parses the complete reply again: the second pointer that proves it is enough.
            if proving is not None:
                return None
            proving = pointer
    return proving


def _add_created_id(result: WriteResult) -> Record | None:
    """Return the record of a create, with the journal's id added: the reply may have it in a Location header."""
    record, created_id = result.record, result.sent_entry.settlement.result_id
    if record is None or created_id is None or record.known.id == created_id:
        return record
    value = record.value
    if record.known.id is None and isinstance(value, dict):
        value = {"id": created_id, **value}
    return record._replace(value=value, known=record.known._replace(id=created_id))


def _restore_record(entry: Entry) -> Record:
    """Return a record with only the journal's id. Raises `ALREADY_DONE` if the journal has no id of an escrow."""
    created_id = entry.settlement.result_id
    if created_id is None and entry.intent.operation == CREATE_TRANSACTION.name:
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"{entry.name} is done ({entry.settlement.detail}), but the journal does not know the id of its escrow.",
            facts=entry.facts,
        )
    known: JsonValue = {"id": created_id}
    return Record(known, known, KnownFields(id=created_id))
