"""Updating an escrow (observed, not published): read, agree, lock, read again, send once, read back.

What an update changes is not published: it may release the escrow, which only a reading shows.
"""

from collections.abc import Callable
from dataclasses import replace

from escrowctl.client.failures import write_failure
from escrowctl.client.inspection import Confirm, inspect, is_another, require_unchanged
from escrowctl.client.orders import Order
from escrowctl.client.reading import Reader
from escrowctl.client.records import Made, Updated
from escrowctl.client.writing import Writer, Written
from escrowctl.config.service import Service
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.contract.record import Located
from escrowctl.errors import EscrowctlError, Stopped
from escrowctl.journal.model import State
from escrowctl.signals import Signals

OrderFor = Callable[[Located | None], Order]
"""Makes the order from the record as it was read (None: not readable)."""


class Update:
    """Updates escrows at one service."""

    def __init__(self, service: Service, *, reader: Reader, writer: Writer, confirm: Confirm, signals: Signals) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._confirm = confirm
        self._signals = signals

    def update(self, resource_id: str, order_for: OrderFor, *, unread: bool) -> Updated:
        """Update one escrow once and read it back; call inside `signals.held()`.

        Raises EscrowctlError: 3 where consent fails or the record changed meanwhile, 12 where the
        outcome is or was unknown, and the refusal's own code otherwise.
        """
        sent_before = self._writer.refuse_known(order_for(None))
        if sent_before is not None:
            return self._read_back(resource_id, Updated(self._conclude(sent_before)))
        before = inspect(self._reader, resource_id, unread=unread, verb="update")
        asked = self._confirm(resource_id, before)
        order = order_for(before)
        with self._writer.alone(order) as waited:
            if asked or waited:
                now = inspect(self._reader, resource_id, unread=unread, verb="update")
                require_unchanged(resource_id, before, now)
            made = self._conclude(self._writer.perform(order))
            return self._read_back(resource_id, Updated(made, before))

    def _conclude(self, written: Written) -> Made:
        if written.entry.state is not State.DONE:
            raise write_failure(self._service, written.entry, written.code, replayed=written.replayed)
        return Made(written.entry, written.record, written.replayed)

    def _read_back(self, resource_id: str, updated: Updated) -> Updated:
        """Return what the record reads as now, where a word for released is known or the reply was empty."""
        made = updated.made
        if made.record is not None and (made.replayed or not self._service.released):
            return updated
        try:
            after = self._reader.read(GET_TRANSACTION, resource_id, decides=True)
        except EscrowctlError as error:
            return replace(updated, unread=error.message)
        except Stopped as stopped:
            # The update is done; that is said first, and the stop comes after.
            self._signals.remember(stopped)
            return replace(updated, unread="it was interrupted")
        if is_another(resource_id, after.located):
            return replace(updated, unread=f"the record says that it is {after.located.id}")
        return replace(updated, after=after)
