"""`escrowctl webhook create` and `list`: register endpoints, and list them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from escrowctl.commands.writing import check_options, read_data, record_of, show_created, show_dry_run
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import LIST_WEBHOOKS
from escrowctl.contract.record import Record
from escrowctl.contract.redaction import find_signing_secret, may_hold_secret
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value
from escrowctl.options import AllowDuplicateOption, DataOption, DryRunOption, KeyOption, ReasonOption
from escrowctl.output.view import Listing, View, view_record
from escrowctl.runtime import describe_age
from escrowctl.session import Session, session_of
from escrowctl.writes.requests import WriteOptions, WriteRequest, make_webhook_request

if TYPE_CHECKING:
    from escrowctl.writes.result import WriteResult

_COLUMNS = ("id", "status", "url", "events", "created")
_URL_FIELDS = ("url", "endpoint", "target_url", "targetUrl", "callback_url", "callbackUrl", "target", "address")
_EVENTS_FIELDS = ("events", "event_types", "eventTypes", "enabled_events", "enabledEvents", "event", "topics")
_MAX_URL_CHARS = 2048


def create(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The URL that receives the events.")] = None,
    event: Annotated[
        list[str] | None, typer.Option("--event", metavar="KIND", help="A kind of event; repeatable.")
    ] = None,
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    allow_duplicate: AllowDuplicateOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Register an endpoint for events. An endpoint cannot be removed.

    The service does not document the body: --url and --event become the fields that the profile
    names (by default url and events), and --data adds other fields. A reply that may contain a
    signing secret is stored next to the journal (mode 0600).

    \b
    Examples:
      escrowctl webhook create --url https://hooks.example.net/escrow
      escrowctl webhook create --url URL --event transaction.released
    """
    session = session_of(context)
    body = _make_webhook_body(session, url, event or [], read_data(data, session.runtime.stdin))
    request = make_webhook_request(body, session.service, check_options(idempotency_key, reason, allow_duplicate))
    if dry_run:
        show_dry_run(session, request)
        return
    with session.signals.held():
        result = _register_endpoint(session, request)
        show_created(session, result, _view_webhook(session, record_of(result)))


def list_webhooks(context: typer.Context) -> None:
    """List the endpoints that the service returns.

    The service does not document pages: the reply may be only the first of several pages.

    \b
    Examples:
      escrowctl webhook list
      escrowctl webhook list --json
    """
    session = session_of(context)
    found = session.reader.read_list(LIST_WEBHOOKS)
    views = tuple(_view_webhook(session, record) for record in found.items)
    session.console.show_listing(Listing(_COLUMNS, views, found.document if session.options.raw else None))


def find_or_register_endpoint(session: Session, local_url: str, url: str | None, *, yes: bool) -> View:
    """Return the endpoint at `url` (None: `local_url`), or register it; ask first, unless `yes` or sandbox."""
    from escrowctl.client.pages import read_pages  # noqa: PLC0415 - help does not need HTTP

    service = session.service
    if url is None and not (service.sandbox or service.origin.is_loopback):
        raise bad_value(f"--register needs --url: {service.origin} cannot reach {local_url}.")
    url = url or f"{local_url}/"
    for page in read_pages(session.reader, LIST_WEBHOOKS):
        for record in page.items:
            found = _view_webhook(session, record)
            if found.named["url"] == url:
                session.console.note("endpoint_exists", f"endpoint {found.id} already has the URL {url} and is used")
                return found
    if not (service.sandbox or yes):
        session.prompt.confirm(
            [
                "GET /webhooks lists no endpoint with this URL:",
                f"  {url}",
                "An endpoint cannot be removed: the service has no call for that.",
                "To register this endpoint, type yes:",
            ],
            "yes",
            why="webhook listen --register needs confirmation",
            declined="nothing was registered",
            hint="without --register, webhook listen only shows the events that it receives",
        )
    request = make_webhook_request(_make_webhook_body(session, url, (), {}), service, WriteOptions())
    with session.signals.held():
        return _view_webhook(session, record_of(_register_endpoint(session, request)))


def _register_endpoint(session: Session, request: WriteRequest) -> "WriteResult":
    """Register an endpoint and return the result. Report which file stores the signing secret."""
    if (done := session.writer.find_recent_create(request)) is not None:
        when = describe_age(done.settled_at or done.sent_at, session.runtime.now())
        names = ", ".join(filter(None, (done.name, done.settlement.result_id)))
        session.console.note("identical", f"an identical endpoint was registered {when} ({names})", important=True)
    secrets = session.journal.secrets
    try:
        result = session.pipeline.run(request)
    except EscrowctlError as error:
        entry = str(error.facts.get("entry") or "")
        if entry and error.code is ErrorCode.OUTCOME_UNKNOWN and secrets.is_stored(entry):
            message = f"the reply, which may contain the signing secret, is stored in {secrets.path_of(entry)}."
            session.console.note("secret", message, important=True)
        raise
    reply = record_of(result).document
    secret = find_signing_secret(reply)
    if not result.replayed and (secret or may_hold_secret(reply, harmless=session.service.webhooks.field_names)):
        name = result.sent_entry.name
        path = secrets.path_of(name)
        value = "the signing secret" if secret else "a value in the reply that may be a secret"
        message = f"escrowctl could not store {value} in {path}: copy it from the output, or ask the service's support."
        if secrets.is_stored(name):
            message = f"{value} is stored in {path}; the service shows it only once."
        # Important: the service shows a secret only once, so `-q` must not hide where it is.
        session.console.note("secret", message, important=True)
    return result


def _view_webhook(session: Session, record: Record) -> View:
    """Return the view of an endpoint. Find its URL and events by the profile's field names, else by usual names."""
    view = view_record(record, raw=session.options.raw)
    service, value = session.service, record.value
    fields = value if isinstance(value, dict) else {}
    url = _find_first_value(fields, (service.webhooks.url_field, *_URL_FIELDS))
    events = _find_first_value(fields, (service.webhooks.events_field, *_EVENTS_FIELDS))
    shown = {**view.named, "url": url, "events": events}
    return view._replace(named={name: shown[name] for name in _COLUMNS})


def _find_first_value(fields: dict[str, JsonValue], names: tuple[str, ...]) -> JsonValue:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _make_webhook_body(
    session: Session, url: str | None, events: Sequence[str], data: dict[str, JsonValue]
) -> JsonValue:
    """Return `data` with URL and events in the profile's fields. Raises `BAD_VALUE` for bad or repeated fields."""
    if url is None and not data:
        raise bad_value("webhook create needs --url, or the complete request body in --data.")
    fields: dict[str, JsonValue] = {}
    if url is not None:
        fields[session.service.webhooks.url_field] = check_url(url)
        if session.service.live and urlsplit(url).scheme != "https":
            message = f'--url "{url}" is plain http: events would be sent unencrypted'
            session.console.note("plain_http", message, label="warning")
    for event in events:
        if not event.strip() or not event.isprintable():
            raise bad_value(f'--event "{event}" is not an event: write a name such as transaction.released.')
    if events:
        fields[session.service.webhooks.events_field] = list(events)
    for name in sorted(data.keys() & fields):
        raise bad_value(f'--data has "{name}", which --url or --event sets: leave it out of --data.')
    return fields | data


def check_url(url: str) -> str:
    """Return `url` unchanged. Raises `ErrorCode.BAD_VALUE` if it is not an absolute http or https URL."""
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > _MAX_URL_CHARS:
        raise bad_value(f"--url must be at most {_MAX_URL_CHARS} visible ASCII characters without spaces.")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise bad_value(f'--url "{url}" is not a URL: {error}.') from error
    if parts.scheme not in ("http", "https") or not host:
        raise bad_value(f'--url "{url}" is not a webhook URL: write one such as https://hooks.example.net/x.')
    return url
