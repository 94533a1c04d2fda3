"""A write whose outcome is unknown: what the service lists, and what an operator decides."""

import json
from typing import Any

from wire_server import Behave, by_method, hang_up

from cli.replies import json_reply

WHY = ("--reason", "desk ticket 5512")
APPLIED = ("journal", "resolve", "j1", "--applied", *WHY)
NOT_APPLIED = ("journal", "resolve", "j1", "--not-applied", *WHY)
RESEND = ("journal", "resolve", "j1", "--resend", "--yes", *WHY)
UUID = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"


def listing(*items: dict[str, Any]) -> Behave:
    return json_reply(json.dumps({"data": list(items)}).encode())


def item(resource_id: str, amount: int = 100, **fields: Any) -> dict[str, Any]:
    return {"id": resource_id, "status": "held", "amount": amount, "currency": "USD", **fields}


def by_path(*, listed: Behave, one: Behave, write: Behave = hang_up) -> Behave:
    """Reads of the collection, reads of one record, and writes."""

    def read(seen: Any, connection: Any) -> None:
        (listed if seen.target.endswith(("/transactions", "/webhooks")) else one)(seen, connection)

    return by_method(GET=read, POST=write, PUT=write, DELETE=write)
