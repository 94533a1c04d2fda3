"""Writes that nothing is read for beforehand: an escrow or an endpoint created, a call outside the interface.

What proves that an escrow was created is in `outcome.py`; here a create that its reply left unknown is
settled by that reply later, and one that is done is compared with what was sent.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from escrowctl.client.failures import write_failure
from escrowctl.client.inspection import is_another, list_differences
from escrowctl.client.orders import Order
from escrowctl.client.outcome import NO_ID, judge_stored
from escrowctl.client.reading import Reader, make_record
from escrowctl.client.records import Made, Record, describe
from escrowctl.client.writing import Writer, Written
from escrowctl.config.service import Service
from escrowctl.contract.body import encode
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import CREATE_TRANSACTION, GET_TRANSACTION
from escrowctl.contract.record import Located, find_id_pointers
from escrowctl.contract.reply import Document, read_reply
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Outcome, Stopped, command, not_sent
from escrowctl.journal.accounts import account_of
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, State
from escrowctl.journal.related import find_creator
from escrowctl.signals import Signals

_MOST_POINTERS = 20
FOUND_IN_REPLY = "id found in the stored reply"

Tell = Callable[[str], None]


def make(order: Order, *, service: Service, reader: Reader, writer: Writer, signals: Signals) -> Made:
    """Carry out an order once; call inside `signals.held()`.

    Raises EscrowctlError: `OUTCOME_UNKNOWN` where its outcome is or was unknown, `NO_CONNECTION` where
    nothing was sent, and the refusal's own code otherwise.
    """
    # Equal orders wait for each other: the second must see what became of the first.
    with writer.alone(order):
        written = writer.perform(order)
        if written.entry.state is State.UNKNOWN and not written.replayed:
            written = _read_accepted(written, service=service, reader=reader, writer=writer, signals=signals)
    if written.entry.state is not State.DONE:
        raise _failure(service, written)
    is_create = order.operation.name == CREATE_TRANSACTION.name
    record = _named(written) if is_create else written.record
    if order.operation.makes_record and record is None:
        record = _known_record(written.entry)
    return Made(
        written.entry,
        record,
        written.replayed,
        find_difference(service, written.entry),
        _find_earlier(service, writer.journal, written.entry) if is_create else None,
    )


def settle_by_reply(
    entry: Entry, *, service: Service, reader: Reader, writer: Writer, tell: Tell = lambda _: None
) -> Written | None:
    """Settle an unknown create whose stored reply proves it by the profile as it is now; None where it does not.

    The record of a 202 is read first; `tell` is told why it settles nothing. Raises EscrowctlError as
    `Journal.settle_later` does.
    """
    outcome = judge_stored(service, entry)
    made = outcome.result_id if outcome else None
    if outcome is None or made is None:
        return None
    if (other := find_creator(writer.journal, entry, made, account_of(service))) is not None:
        tell(f"the stored reply has the id {made}, which {other.name} made")
        return None
    settlement = entry.settlement._replace(outcome=Outcome.DONE, result_id=made)
    if outcome.outcome is Outcome.DONE:
        return Written(writer.journal.settle_later(entry, settlement._replace(detail=FOUND_IN_REPLY)), None)
    if (record := _read_made(made, reader, tell)) is None:
        return None
    detail = f"{settlement.http_status}; read as {record.located.status or made}"
    settlement = settlement._replace(detail=detail, reply=encode(record.document), verified=True)
    return Written(writer.journal.settle_later(entry, settlement), record)


def find_difference(service: Service, entry: Entry) -> EscrowctlError | None:
    """Return the error (`CHECK_FAILED`) of a create that is done, but not as it was sent; None where it is.

    Its stored record has a failed status or other money.
    """
    made = entry.settlement.result_id
    if made is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return None
    differences = _list_differences(service, entry)
    if not differences:
        return None
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"{made} was created, but {' and '.join(differences)}.",
        hint=command(f"tx get {shlex.quote(made)}"),
        outcome=Outcome.DONE,
        facts={**entry.facts, "id": made},
    )


def _find_earlier(service: Service, journal: Journal, entry: Entry) -> Entry | None:
    """Return an earlier create that has the id of this one: the service may have made one escrow of the two."""
    made = entry.settlement.result_id
    # The create is done, whatever can be read of the others now.
    with suppress(EscrowctlError):
        earlier = find_creator(journal, entry, made, account_of(service)) if made is not None else None
        return earlier if earlier is not None and earlier.number < entry.number else None
    return None


def _list_differences(service: Service, entry: Entry) -> list[str]:
    reply = read_reply((entry.settlement.reply or "").encode())
    if not isinstance(reply, Document):
        return []
    found = make_record(reply.value, service=service, noun=CREATE_TRANSACTION.noun).located
    is_failed = found.status is not None and found.status.casefold() in service.failed
    return [*([f"its status is {found.status}"] if is_failed else []), *list_differences(found, entry.intent.money)]


def _read_accepted(written: Written, *, service: Service, reader: Reader, writer: Writer, signals: Signals) -> Written:
    """Settle a create that was answered with 202 by one reading; without it, it stays unknown."""
    try:
        settled = settle_by_reply(written.entry, service=service, reader=reader, writer=writer)
    except EscrowctlError:
        return written
    except Stopped as stopped:
        # What is known of the write is reported first; the stop comes after.
        signals.remember(stopped)
        return written
    return settled or written


def _read_made(made: str, reader: Reader, tell: Tell) -> Record | None:
    """Return the record that says it has this id; None where none can be read."""
    try:
        record = reader.read(GET_TRANSACTION, parse_id(made), decides=True)
    except EscrowctlError as error:
        tell(f"{made} could not be read: {error.message}")
        return None
    tell(f"{made}: {describe(record.located)}")
    return None if record.located.id is None or is_another(made, record.located) else record


def _failure(service: Service, written: Written) -> EscrowctlError:
    """Return why a write is not done; of a create without proof, with its reply and what would prove it."""
    entry = written.entry
    failure = write_failure(service, entry, written.code, replayed=written.replayed)
    outcome = judge_stored(service, entry) if entry.state is State.UNKNOWN else None
    if outcome is None or written.record is None:
        return failure
    failure.facts = {**failure.facts, "body": written.record.document}
    pointer = _find_pointer(service, entry, written.record)
    if service.profile is not None and (pointer is not None or NO_ID in outcome.detail):
        failure.hints = _ways_to_settle(pointer, entry)
    return failure


def _ways_to_settle(pointer: str | None, entry: Entry) -> tuple[Hint, Hint]:
    named = f"if {pointer} is the id" if pointer is not None else "if a field of the reply is the id"
    return (
        command(f"config set reply.id {shlex.quote(pointer or '/FIELD')}", named),
        command(f"journal resolve {entry.name}", "then settle this one"),
    )


def _find_pointer(service: Service, entry: Entry, record: Record) -> str | None:
    """Return the one place in a reply that would prove the create if the profile said that the id is there."""
    noun = CREATE_TRANSACTION.noun
    pointers = find_id_pointers(record.value, noun=noun) or find_id_pointers(record.document, noun=noun)
    # Each try reads the whole reply again: two that prove are as many as a hundred.
    tried = (pointer for pointer in islice(pointers, _MOST_POINTERS) if _would_prove(service, entry, pointer))
    proving = list(islice(tried, 2))
    return proving[0] if len(proving) == 1 else None


def _would_prove(service: Service, entry: Entry, pointer: str) -> bool:
    pointed = replace(service, pointers=replace(service.pointers, id=pointer))
    outcome = judge_stored(pointed, entry)
    return outcome is not None and outcome.result_id is not None


def _named(written: Written) -> Record | None:
    """Return the record of a create under the id that the journal has: a Location may have named it alone."""
    record, made = written.record, written.entry.settlement.result_id
    if record is None or made is None:
        return record
    value = record.value
    if record.located.id is None and isinstance(value, dict):
        value = {"id": made, **value}
    return replace(record, value=value, located=replace(record.located, id=made))


def _known_record(entry: Entry) -> Record:
    """Return what is known of a thing that was created without a reply to show: its id."""
    made = entry.settlement.result_id
    if made is None and entry.intent.operation == CREATE_TRANSACTION.name:
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"this is done ({entry.name}: {entry.settlement.detail}), and what it made is not known here.",
            hint=command(f"journal show {entry.name}"),
            facts=entry.facts,
        )
    known: JsonValue = {"id": made}
    return Record(known, known, Located(id=made))
