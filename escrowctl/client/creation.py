"""Writes that nothing is read for beforehand: an escrow or an endpoint made, a call that no interface knows."""

from escrowctl.client.failures import write_failure
from escrowctl.client.orders import Order
from escrowctl.client.records import Made
from escrowctl.client.writing import Writer
from escrowctl.config.service import Service
from escrowctl.journal.entries import State


def make(order: Order, *, service: Service, writer: Writer, invocation: str) -> Made:
    """Carry out an order once; call inside `signals.held()`.

    Raises EscrowctlError: 12 where its outcome is or was unknown, 11 where nothing was sent, and
    the refusal's own code otherwise.
    """
    # Equal orders wait for each other: the second must see what became of the first.
    with writer.alone(order):
        written = writer.perform(order)
    if written.entry.state is not State.DONE or (order.operation.makes_record and written.record is None):
        raise write_failure(service, written.entry, written.code, invocation=invocation, replayed=written.replayed)
    return Made(written.entry, written.record, written.replayed)
