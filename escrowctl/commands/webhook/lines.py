"""Views of webhook events, and of attempts to forward events. Each view has a line."""

from escrowctl.contract.json import JsonValue, Number
from escrowctl.output.view import View
from escrowctl.post_once import Reply
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.forward import Attempt
from escrowctl.webhooks.spool import ForwardState


def view_event(event: Event, *, at: str, result: str = "", forward: JsonValue = None) -> View:
    """Return the view of an event. `at` is the time to show; `result` and `forward` (JSON), the forwarding."""
    kind, resource, status = event.describe()
    if event.shares_id:
        result = f"{result}, another event with the id {event.sent_id} has a different body".removeprefix(", ")
    checked = "verified" if event.verified else "UNVERIFIED"
    named: dict[str, JsonValue] = {
        "at": at,
        "id": event.name,
        "type": kind,
        "resource": resource,
        "status": status,
        "verified": checked,
        "forward": result,
    }
    counted: dict[str, JsonValue] = {"arrivals": Number(str(event.arrivals)), "sent_id": event.sent_id}
    document = named | {"verified": event.verified, **counted, "forward": forward}
    # The line has little room: "verified" is left out if there is a result.
    last = result if event.verified and result else f"{checked}, {result}" if result else checked
    cells = (f"{event.name:<12}", f"{kind or '-':<20}", f"{resource or '-':<11}", f"{status or '-':<8}")
    line = "  ".join((f"{at[11:19]}Z", *cells, last))
    return View(document, event.name, named, line=line, named=named, record=event.document)


def view_attempt(attempt: Attempt, *, at: str) -> View:
    """Return the view of an attempt to forward an event. `at` is the time to show."""
    number, delay = attempt.number, attempt.delay
    parts = [describe_reply(attempt.reply)]
    if attempt.state is ForwardState.FAILED:
        parts.append(f"given up after {number} attempts")
    elif delay is not None:
        parts.append(f"retry in {delay:.0f} s")
    elif number > 1:
        parts.append(f"attempt {number}")
    forward = make_reply_document(attempt.reply) | {"attempt": Number(str(number)), "state": str(attempt.state)}
    return view_event(attempt.event, at=at, result=", ".join(parts), forward=forward)


def describe_reply(reply: Reply) -> str:
    """Return the reply to one attempt as text: `200, 9 ms`, or why there is no status."""
    return reply.error if reply.status is None else f"{reply.status}, {reply.seconds * 1000:.0f} ms"


def make_reply_document(reply: Reply) -> dict[str, JsonValue]:
    """Return the reply to one attempt as JSON: its status or its fault, and its duration."""
    status = Number(str(reply.status)) if reply.status is not None else None
    return {"http_status": status, "fault": reply.error or None, "ms": Number(f"{reply.seconds * 1000:.0f}")}
