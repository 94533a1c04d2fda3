"""Creating an escrow: sent once, and done only if the reply names a record."""

from escrowctl.client.failures import write_failure
from escrowctl.client.orders import Created, NewEscrow, order_creation
from escrowctl.client.writing import Writer
from escrowctl.config.service import Service
from escrowctl.journal.entries import State


def create(escrow: NewEscrow, *, service: Service, writer: Writer, invocation: str) -> Created:
    """Create an escrow once; call inside `signals.held()`.

    Raises EscrowctlError: 12 where its outcome is or was unknown, 11 where nothing was sent, and
    the refusal's own code otherwise.
    """
    order = order_creation(escrow, service)
    # Equal creates wait for each other: the second must see what became of the first.
    with writer.alone("create", order.likeness, escrow.reference or ""):
        written = writer.perform(order)
    if written.entry.state is not State.DONE or written.record is None:
        raise write_failure(service, written.entry, written.code, invocation=invocation)
    return Created(written.entry, written.record, written.replayed)
