"""The webhook operations of the interface: create, list.

Nothing is delivered yet: an endpoint is kept, with all that a delivery will need.
"""

from collections.abc import Callable
from datetime import datetime

from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.calls import Call
from escrowctl.sandbox.endpoints import Endpoint, EndpointStatus, add_endpoint, has_endpoint, newest_endpoints
from escrowctl.sandbox.ids import draw_secret
from escrowctl.sandbox.pages import no_such_start, read_page
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.registrations import read_registration
from escrowctl.sandbox.store import Store


class Webhooks:
    """Answers for webhook endpoints. Every answer is given after its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], draw_id: Callable[[str], str]) -> None:
        self._store = store
        self._now = now
        self._draw_id = draw_id

    def create(self, call: Call) -> JsonObject:
        """Keep a new endpoint, and return its record with the secret; 400 for a flawed body.

        The same address again makes a second endpoint: nothing is shown that would forbid it.
        """
        wanted = read_registration(call.json_object())
        with self._store.writing() as connection:
            while True:
                endpoint = Endpoint(
                    id=self._draw_id("wh"),
                    url=wanted.url,
                    events=wanted.events,
                    description=wanted.description,
                    status=EndpointStatus.ENABLED,
                    secret=draw_secret(),
                    extra=wanted.extra,
                    created_at=timestamp(self._now()),
                )
                if add_endpoint(connection, endpoint):
                    break
        return endpoint.document_with_secret()

    def list_newest(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first, without their secrets; see pages.py."""
        page = read_page(call)
        with self._store.reading() as connection:
            if page.after is not None and not has_endpoint(connection, page.after):
                raise no_such_start("webhook endpoint", page.after)
            found = newest_endpoints(connection, after=page.after, count=page.count)
        return page.envelope([endpoint.document() for endpoint in found])
