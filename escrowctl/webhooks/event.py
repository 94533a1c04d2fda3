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
_INNER_NAMES = ("data", "object", "resource", "payload", "transaction", "escrow")
_NOUN = "transaction"


class Event(NamedTuple):
    """One event as it was received. `number` is its place in the order of arrival; `arrivals` counts its deliveries.

    `sent_id` is the sender's id, None if invalid. `shares_id`: an event with another body has the same id.
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
        """A name that no other stored event has, such as `e12`."""
        return f"e{self.number}"

    @property
    def name(self) -> str:
        """The sender's id if only this event has it, else the local name."""
        return self.sent_id if self.sent_id and not self.shares_id else self.local_name

    @property
    def document(self) -> JsonValue:
        """The body as JSON; None if it is not JSON."""
        reply = read_reply(self.delivery.body)
        return None if isinstance(reply, UnreadableReply) else reply.value

    def describe(self) -> tuple[str | None, str | None, str | None]:
        """Return the event's kind and its record's id and status, each None if not found."""
        fields = _fold_names(self.document)
        kind = next((text for name in _KIND_NAMES if (text := as_text(fields.get(name)))), None)
        # At the top, `id` may be the id of the event.
        record = _find_record(fields) or {name: value for name, value in fields.items() if name != "id"}
        found = find_known_fields(record, noun=_NOUN)
        return kind, found.id, found.status


def _find_record(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the innermost object under one of `_INNER_NAMES`, or {} if there is none. Names are in lower case."""
    inner = next((value for name in _INNER_NAMES if isinstance(value := fields.get(name), dict)), None)
    if inner is None:
        return {}
    folded = _fold_names(inner)
    return _find_record(folded) or folded


def _fold_names(value: JsonValue) -> dict[str, JsonValue]:
    return {name.casefold(): item for name, item in value.items()} if isinstance(value, dict) else {}
