"""`escrowctl sandbox deliveries|trigger|clock`: the events that the sandbox sends, and its time."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from escrowctl.commands.sandbox.calls import call_sandbox, list_items, sandbox_session
from escrowctl.commands.times import parse_duration
from escrowctl.contract.json import JsonValue, Number, as_json
from escrowctl.errors import bad_value, command
from escrowctl.output.view import Listing, View
from escrowctl.runtime import timestamp
from escrowctl.session import Session

_COLUMNS = ("id", "event", "endpoint", "state", "tries", "next", "last")
_POLL_SECONDS = 0.1


def deliveries(
    context: typer.Context,
    event_id: Annotated[
        str | None, typer.Argument(metavar="[EVENT_ID]", help="Show this event: its body and every attempt.")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Send the event again, with the same id.")] = False,
    undelivered: Annotated[bool, typer.Option("--undelivered", help="Only waiting and dead deliveries.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="At most N events, newest first.")] = 50,
) -> None:
    """List the events that are sent to endpoints, newest first.

    A delivery is waiting, delivered, or dead (after five failures). "last" is the status of the last
    reply. "next" is the time of the next attempt, by this machine's clock.

    \b
    Examples:
      escrowctl sandbox deliveries --undelivered
      escrowctl sandbox deliveries msg_7K2M9QHD --replay
    """
    session = sandbox_session(context)
    if event_id is not None:
        from escrowctl.contract.identifiers import parse_id  # noqa: PLC0415 - a list does not need it

        path = f"/sandbox/events/{parse_id(event_id, noun='event')}"
        if replay:
            _show_sent(session, call_sandbox(session, "POST", f"{path}/replay"))
            return
        found = call_sandbox(session, "GET", path)
        session.show(View(found, event_id, found))
        return
    if replay:
        raise bad_value("--replay needs the id of an event.", hint=command("sandbox deliveries", bare=True))
    query = f"?limit={limit}" + ("&undelivered=true" if undelivered else "")
    found = call_sandbox(session, "GET", f"/sandbox/deliveries{query}")
    clock_lead = timedelta(seconds=float(str(getattr(found["ahead_seconds"], "text", 0))))
    items, views = list_items(found["data"]), []
    for item in items:
        due, is_unanswered = item["next_attempt"], item["last_status"] is None and item["last_error"] is not None
        next_attempt = timestamp(datetime.fromisoformat(due) - clock_lead) if isinstance(due, str) else None
        last = "none" if is_unanswered else item["last_status"]
        named = {**item, "tries": item["attempts"], "next": next_attempt, "last": last}
        views.append(View(item, str(item["id"]), named=named))
    session.console.show_listing(Listing(_COLUMNS, tuple(views), keys=("id", "endpoint")))
    if ids := ", ".join(dict.fromkeys(str(item["id"]) for item in items if item["triggered"])):
        session.console.note("triggered", f"sent by sandbox trigger, without a change of the escrow: {ids}")
    if found["has_more"]:
        session.console.note("more", f"only the newest {limit} are shown; a larger --limit shows older ones")


def trigger(
    context: typer.Context,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The kind of event, such as transaction.released.")],
    resource_id: Annotated[str, typer.Option("--id", metavar="ID", help="The escrow that the event is about.")],
) -> None:
    """Send an event about an escrow without changing the escrow.

    Endpoints get the event that a real change would send, with the escrow's current state.
    escrowctl sandbox deliveries marks such an event as triggered.

    \b
    Examples:
      escrowctl sandbox trigger transaction.released --id tx_7K2M9QHD
      escrowctl sandbox trigger transaction.updated --id tx_7K2M9QHD --json
    """
    session = sandbox_session(context)
    _show_sent(session, call_sandbox(session, "POST", "/sandbox/events", {"event": event, "transaction": resource_id}))


def clock(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[advance TIME]", help="How far to advance: 90s, 10m, 2h, 7d.")
    ] = None,
) -> None:
    """Show or advance the sandbox's clock.

    Everything that is due by the new time happens, in the order of time: escrows expire or are
    released automatically, and failed deliveries are attempted again. The clock never goes back,
    except that sandbox reset sets it to the real time.

    \b
    Examples:
      escrowctl sandbox clock
      escrowctl sandbox clock advance 7d
    """
    session = sandbox_session(context)
    match words or []:
        case []:
            found = call_sandbox(session, "GET", "/sandbox/clock")
        case ["advance", text]:
            seconds = Number(str(int(parse_duration(text, name="advance").total_seconds())))
            found = call_sandbox(session, "POST", "/sandbox/clock", {"advance_seconds": seconds})
            # Wait until everything due has happened.
            while found["advancing_to"] is not None:
                session.runtime.sleep(_POLL_SECONDS)
                found = call_sandbox(session, "GET", "/sandbox/clock")
        case _:
            raise bad_value("sandbox clock takes no argument, or advance with a duration, such as advance 7d.")
    shown = {name: value for name, value in found.items() if name != "advancing_to"}
    session.show(View(as_json(shown), str(found["now"]), as_json(shown)))


def _show_sent(session: Session, event: dict[str, JsonValue]) -> None:
    """Show an event that the sandbox now sends, and the command that lists the event's deliveries."""
    event_id, sent = str(event["id"]), list_items(event["deliveries"])
    line = f"{event_id}   {event['event']}   {event['transaction']}"
    endpoints = f"{len(sent)} endpoint{'s' if len(sent) > 1 else ''}"
    destination = f"being sent to {endpoints}" if sent else "no endpoint gets this event"
    session.show(View(event, event_id, event, line=f"{line}   {destination}"))
    if sent:
        session.console.note("next", f"{session.invocation.program} sandbox deliveries {event_id}", label="next")
