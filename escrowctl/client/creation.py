"""Writes that nothing is read for beforehand: an escrow or an endpoint made, a call that no interface knows."""

from escrowctl.client.failures import write_failure
from escrowctl.client.orders import Order
from escrowctl.client.records import Made, Record
from escrowctl.client.writing import Writer
from escrowctl.config.service import Service
from escrowctl.contract.number import JsonValue
from escrowctl.contract.record import Located
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending
from escrowctl.journal.entries import Entry, State


def make(order: Order, *, service: Service, writer: Writer, invocation: str) -> Made:
    """Carry out an order once; call inside `signals.held()`.

    Raises EscrowctlError: 12 where its outcome is or was unknown, 11 where nothing was sent, and
    the refusal's own code otherwise.
    """
    # Equal orders wait for each other: the second must see what became of the first.
    with writer.alone(order):
        written = writer.perform(order)
    if written.entry.state is not State.DONE:
        raise write_failure(service, written.entry, written.code, invocation=invocation, replayed=written.replayed)
    record = written.record
    if order.operation.makes_record and record is None:
        record = _known_record(written.entry, invocation)
    return Made(written.entry, record, written.replayed)


def _known_record(entry: Entry, invocation: str) -> Record:
    """Return what is known of a thing whose making was settled later, by a reading or a word: its id."""
    made = entry.verdict.result_id
    if made is None:
        raise EscrowctlError(
            ErrorCode.ALREADY_DONE,
            f"this is done ({entry.name}: {entry.verdict.detail}), and what it made is not known here. {NOTHING_SENT}",
            hint=f"{invocation} journal show {entry.name}",
            sending=Sending.NOT_SENT,
            facts=entry.facts,
        )
    known: JsonValue = {"id": made}
    return Record(known, known, Located(id=made))
