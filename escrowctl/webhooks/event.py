"""A received event, and a summary of its body.

INTERFACE.md section 6 shows no payload, so nothing here is a contract: the summary tries common names of fields,
and a value that it does not find is None.
"""

from datetime import datetime
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, UnreadableReply, read_reply
from escrowctl.contract.record import as_text, find_known_fields
from escrowctl.webhooks.signing import Delivery

_KIND_NAMES = ("type", "event", "event_type", "eventtype", "topic")
_RECORD_NAMES = ("data", "object", "resource", "payload", "transaction", "escrow")


class Event(NamedTuple):
    """One event as it was received. `number` is its place in the order of arrival; `arrivals` counts its deliveries.

    `sent_id` is the sender's id, None if invalid. `shares_id`: an event with a different body has the same id.
    """

    number: int
    sent_id: str | None
    delivery: Delivery
    verified: bool
    received_at: datetime
    arrivals: int = 1
    shares_id: bool = False

    @property
    def local_name(self) -> str:
        """A unique name among the stored events, such as `e12`."""
        return f"e{self.number}"

    @property
    def name(self) -> str:
        """The sender's id if no other stored event has that id, else the local name."""
        return self.sent_id if self.sent_id and not self.shares_id else self.local_name

    @property
    def document(self) -> JsonValue:
        """The body as JSON; None if it is not JSON."""
        reply = read_reply(self.delivery.body)
        return None if isinstance(reply, UnreadableReply) else reply.value

    def describe(self) -> tuple[str | None, str | None, str | None]:
        """Return the kind of the event, and the id and the status of its record, each None if not found."""
        fields = _lowercase_names(self.document)
        kind = next((text for name in _KIND_NAMES if (text := as_text(fields.get(name)))), None)
        # At the top, `id` may be the id of the event.
        record = _find_record(fields) or {name: value for name, value in fields.items() if name != "id"}
        found = find_known_fields(record, noun="transaction")
        return kind, found.id, found.status


def _find_record(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the innermost object under one of `_RECORD_NAMES`, or {}. `fields` must have names in lower case."""
    inner = next((value for name in _RECORD_NAMES if isinstance(value := fields.get(name), dict)), None)
    if inner is None:
        return {}
    folded = _lowercase_names(inner)
    return _find_record(folded) or folded


def _lowercase_names(value: JsonValue) -> dict[str, JsonValue]:
    return {name.casefold(): item for name, item in value.items()} if isinstance(value, dict) else {}
