"""`escrowctl webhook verify`: check the signature of one event."""

from typing import Annotated

import typer

from escrowctl.commands.webhook.lines import view_event
from escrowctl.commands.webhook.sender import EventSource, SecretFileOption, find_event
from escrowctl.commands.writing import read_input
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value
from escrowctl.runtime import timestamp
from escrowctl.session import session_of
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import TOLERANCE_SECONDS, Delivery, SignatureError
from escrowctl.webhooks.spool import open_spool


def verify(
    context: typer.Context,
    body: Annotated[str | None, typer.Argument(metavar="[FILE]", help="The body as received; - for stdin.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="LINE", help='A header, such as "webhook-id: msg_1".')
    ] = None,
    event: Annotated[str | None, typer.Option("--event", metavar="EVENT", help="The id of a stored event.")] = None,
    tolerance: Annotated[
        float, typer.Option(metavar="SECONDS", help="How old, or how far in the future, the event may be.")
    ] = TOLERANCE_SECONDS,
    secret_file: SecretFileOption = None,
) -> None:
    """Check the signature of an event; fail if it is not valid.

    The secret comes from --secret-file, ESCROWCTL_WEBHOOK_SECRET, or the reply of webhook create;
    otherwise escrowctl asks for it. For a stored event, --tolerance applies to its age on arrival.

    \b
    Examples:
      escrowctl webhook verify body.json -H "webhook-id: msg_1" -H ...
      escrowctl webhook verify --event msg_1
    """
    session = session_of(context)
    if (body is None) == (event is None):
        raise bad_value('webhook verify needs exactly one of FILE, "-" and --event EVENT.')
    if event is not None and header:
        raise bad_value("--header cannot be combined with --event: a stored event has its own headers.")
    if not tolerance >= 0:
        raise bad_value(f"--tolerance {tolerance:g} is out of range: it must be 0 or more seconds.")
    headers = []
    for line in header or []:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise bad_value(f'--header "{line}" lacks a name and a colon: write one such as "webhook-id: msg_1".')
        headers.append((name.strip(), value.strip()))
    source = EventSource(session, secret_file)
    if event is not None:
        with open_spool(source.spool_path, source.identity) as spool:
            found = find_event(spool, event)
    else:
        delivery = Delivery(tuple(headers), read_input(str(body), session.runtime.stdin))
        found = Event(0, delivery.id, delivery, verified=False, received_at=session.runtime.now())
    secrets = source.find_secrets() if body != "-" and session.prompt.obstacle is None else source.require_secrets()
    if not secrets:
        typed = session.prompt.ask_secret("Type the signing secret (it is not shown):").strip()
        secrets = [source.check_secret(typed, source="the answer")]
    try:
        source.make_verifier(secrets).check(found.delivery, now=found.received_at, tolerance=tolerance)
    except SignatureError as error:
        message = f"the event is not verified: {error}."
        raise EscrowctlError(ErrorCode.BAD_SIGNATURE, message, facts={"id": found.sent_id}) from error
    session.show(view_event(found._replace(verified=True), at=timestamp(found.received_at)))
