"""`escrowctl webhook replay`: send stored events to a web application again."""

from datetime import datetime
from typing import Annotated

import typer

from escrowctl.commands.times import parse_moment
from escrowctl.commands.webhook.lines import describe_reply, make_reply_document, view_event
from escrowctl.commands.webhook.sender import EventSource, SecretFileOption, UnverifiedOption, find_event
from escrowctl.config.service import STANDARD
from escrowctl.contract.json import JsonValue
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, not_sent
from escrowctl.post_once import Target
from escrowctl.runtime import timestamp
from escrowctl.session import Session, session_of
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.forward import read_target, send
from escrowctl.webhooks.signing import Delivery, SignatureError, read_secret, renew_signature
from escrowctl.webhooks.spool import ForwardState, Spool, WaitingEvent, open_spool


def replay(
    context: typer.Context,
    forward_to: Annotated[str, typer.Option(metavar="URL", help="Your application's URL on this machine.")],
    events: Annotated[list[str] | None, typer.Argument(metavar="[EVENT]...", help="The ids of the events.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="All events since a time, or 24h (ago).")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All events that this URL has not accepted.")] = False,
    duplicate: Annotated[bool, typer.Option("--duplicate", help="Send each event twice, as a test.")] = False,
    sign: Annotated[bool, typer.Option("--sign", help="Sign again, with the current time and the same id.")] = False,
    unverified: UnverifiedOption = False,
    secret_file: SecretFileOption = None,
) -> None:
    """Send stored events to your application again.

    Each event is sent as it was received, and stays stored. If your application refuses events
    that are older than five minutes, add --sign.

    \b
    Examples:
      escrowctl webhook replay msg_1 --forward-to http://127.0.0.1:3000/x
      escrowctl webhook replay --failed --forward-to http://[::1]:80/x
    """
    session = session_of(context)
    if [bool(events), since is not None, failed].count(True) != 1:
        raise bad_value("webhook replay needs exactly one of EVENT, --since and --failed.")
    target = read_target(forward_to)
    moment = parse_moment(since, name="--since", now=session.runtime.now()) if since is not None else None
    source = EventSource(session, secret_file)
    if sign and source.webhooks.scheme != STANDARD:
        raise bad_value("--sign works only with the scheme Standard Webhooks (webhook.scheme).")
    secrets = source.require_secrets() if sign else []
    not_accepted: list[str] = []
    with open_spool(source.spool_path, source.identity) as spool:
        chosen = _choose_events(session, spool, target, events or [], moment, unverified=unverified)
        for event in chosen:
            delivery = _sign_again(event, source, secrets, now=session.runtime.now())
            replies = [
                send(target, delivery, monotonic=session.runtime.monotonic) for _ in range(2 if duplicate else 1)
            ]
            result = describe_reply(replies[0])
            if duplicate:
                result = f"sent twice: {', '.join(reply.error or str(reply.status) for reply in replies)}"
            documents: JsonValue = [make_reply_document(reply) for reply in replies]
            at = timestamp(session.runtime.now())
            session.console.show_line(view_event(event, at=at, result=result, forward=documents))
            if not all(reply.is_accepted for reply in replies):
                not_accepted.append(event.name)
            else:
                spool.record_attempt(WaitingEvent(event, attempts=1, refusals=0), str(target), ForwardState.DONE)
    if not_accepted:
        message = f"{target} did not accept {len(not_accepted)} of {len(chosen)} events."
        raise EscrowctlError(ErrorCode.NOT_FORWARDED, message, facts={"events": not_accepted})


def _sign_again(event: Event, source: EventSource, secrets: list[str], *, now: datetime) -> Delivery:
    """Return the event's delivery, signed again with the secret that verifies it; unchanged if no secret does."""
    for secret in secrets:
        try:
            source.make_verifier([secret]).check(event.delivery, now=event.received_at)
        except SignatureError:
            continue
        return renew_signature(event.delivery, read_secret(secret, source.webhooks.scheme, source="a secret"), now=now)
    return event.delivery


def _choose_events(
    session: Session, spool: Spool, target: Target, names: list[str], since: datetime | None, *, unverified: bool
) -> list[Event]:
    """Return the events with these `names`, else all `since` a time, else all that `target` has not accepted.

    Without `unverified`, leave out unverified events; raise `BAD_SIGNATURE` if one is named. See also `find_event`.
    """
    if names:
        chosen = [find_event(spool, name) for name in dict.fromkeys(names)]
        for event in chosen:
            if not event.verified and not unverified:
                message = f"{event.name} is UNVERIFIED: it may not come from the service."
                hint = "to send it anyway: repeat the command with --unverified"
                raise not_sent(ErrorCode.BAD_SIGNATURE, message, hint=hint, facts={"id": event.name})
        return chosen
    found = spool.list_since(timestamp(since)) if since is not None else spool.list_undelivered(str(target))
    chosen = [event for event in found if event.verified or unverified]
    if left_out := len(found) - len(chosen):
        message = f"UNVERIFIED events left out: {left_out}. To send these events: add --unverified"
        session.console.note("unverified", message)
    if not chosen:
        session.console.note("none", "no event was found, and nothing was sent")
    return chosen
