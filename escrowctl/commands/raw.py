"""Calls typed by hand: the path decides which operation it is, and the reply is shown as JSON."""

from collections.abc import Callable

from escrowctl.commands.tx.once_only import write_each
from escrowctl.commands.tx.update import update_one
from escrowctl.commands.webhook.endpoints import register
from escrowctl.commands.writing import check_currency, confirm_repetition, note_replayed, read_data, rehearse
from escrowctl.config.service import Service
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.money import check_minor_digits, parse_amount
from escrowctl.contract.operations import CREATE_TRANSACTION, CREATE_WEBHOOK, UPDATE_TRANSACTION, Access, Operation
from escrowctl.contract.paths import Call, parse_call
from escrowctl.contract.readable import list_of
from escrowctl.contract.record import make_item, make_record
from escrowctl.errors import bad_value
from escrowctl.output.view import View, view_record
from escrowctl.session import Session
from escrowctl.writes.requests import RecordOptions, WriteOptions, WriteRequest, request_call, request_create_of


def call_path(
    session: Session, method: str, path: str, data: str | None, options: WriteOptions, *, yes: bool, dry_run: bool
) -> None:
    """Call a path, and show the whole reply; `data` as `read_data` takes it."""
    service = session.service
    called = parse_call(method, path, base=service.origin.path, prefix=service.api_prefix)
    body = read_data(data, session.runtime.stdin) if data is not None else None
    if called.operation.access is Access.WRITE:
        _write(session, called, body, options, yes=yes, dry_run=dry_run)
    elif data is not None or dry_run:
        raise bad_value(f"{'--data' if data is not None else '--dry-run'} is only for writes: leave it out for a GET.")
    else:
        _read(session, called)


def _read(session: Session, call: Call) -> None:
    """Show the whole reply to a GET: JSON, or text as it came."""
    session.service.refuse_key(call.operation.path, call.resource_id, call.query)
    found = session.reader.fetch(call)
    if isinstance(found, bytes):
        session.console.text(found)
    else:
        session.show(_view(found, call.operation, session.service))


def _write(session: Session, call: Call, body: JsonValue, options: WriteOptions, *, yes: bool, dry_run: bool) -> None:
    """Carry out a write under the guards of the operation that its path really is."""
    operation, resource_id = call.operation, call.resource_id or ""
    match operation.name:
        case CREATE_TRANSACTION.name:
            _check_creation(session, _require_body(body))
            request = request_create_of(body, options, operation=operation)
            _run(session, request, lambda: confirm_repetition(session, request, yes=yes), dry_run=dry_run)
        case CREATE_WEBHOOK.name:
            register(session, _require_body(body), options, dry_run=dry_run, operation=operation)
        case UPDATE_TRANSACTION.name:
            update_one(
                session,
                resource_id,
                _require_body(body),
                options,
                yes=yes,
                allow_unreadable=False,
                dry_run=dry_run,
                operation=operation,
            )
        case _ if operation.once_only:
            given = RecordOptions(body=encode(body) if body is not None else None)
            write_each(session, operation, [resource_id], given, options, several=False, yes=yes, dry_run=dry_run)
        case _:
            request = request_call(operation, body, options, resource_id=call.resource_id)
            if not (yes or dry_run):
                _confirm_raw(session, operation, body)
            _run(session, request, dry_run=dry_run)


def _require_body(body: JsonValue) -> JsonValue:
    if body is None:
        raise bad_value("this call needs a body: give it with --data.")
    return body


def _check_creation(session: Session, body: JsonValue) -> None:
    """Refuse (exit 2) what tx create refuses: amounts and currencies that could be read two ways."""
    fields = body if isinstance(body, dict) else {}
    amount, currency = fields.get("amount"), fields.get("currency")
    if amount is not None and not isinstance(amount, Number):
        raise bad_value(f'"amount" is {encode(amount)}: write a JSON number, such as 100.')
    if currency is not None and not isinstance(currency, str):
        raise bad_value(f'"currency" is {encode(currency)}: write a code, such as "USD".')
    typed = parse_amount(amount.text, name='"amount"') if amount is not None else None
    code = check_currency(session, currency, name='"currency"') if currency is not None else None
    if typed is not None and code is not None:
        check_minor_digits(typed, code, name='"amount"')


def _confirm_raw(session: Session, operation: Operation, body: JsonValue) -> None:
    what = f"{operation.method} {session.service.url(operation.path)}"
    session.prompt.confirm(
        [
            f"  {what}" + (f"  {encode(body)}" if body is not None else ""),
            "The service does not document this call. To send it, type yes:",
        ],
        "yes",
        why=f"{what} needs confirmation",
        declined="the call was not confirmed",
    )


def _run(session: Session, request: WriteRequest, confirm: Callable[[], None] = lambda: None, *, dry_run: bool) -> None:
    if dry_run:
        rehearse(session, request)
        return
    with session.signals.held():
        result = session.pipeline.run(request, confirm)
        note_replayed(session, result)
        entry = result.sent
        view = _view(result.record.document if result.record else None, request.operation, session.service)
        done = f"the service replied {entry.settlement.http_status} to {entry.intent.method} {entry.intent.url}"
        session.show(view._replace(id=view.id or entry.settlement.result_id), done=done, facts=entry.facts)
        if result.failure is not None:
            raise result.failure


def _view(document: JsonValue, operation: Operation, service: Service) -> View:
    """Return the view of a whole reply: of a record, or of a list where it is one and no record itself."""
    noun, pointers = operation.noun, service.pointers
    record = make_record(document, pointers=pointers, noun=noun)
    items = list_of(record, noun=noun)
    views = (view_record(make_item(item, pointers=pointers, noun=noun), raw=True) for item in items or ())
    return view_record(record, raw=True)._replace(whole=True, items=None if items is None else tuple(views))
