"""The calls of `escrowctl api`: any GET, and the writes that have no command. The reply is shown as JSON."""

from escrowctl.commands.writing import note_replayed, read_data, show_dry_run
from escrowctl.config.service import Service
from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.operations import WRITES, Operation
from escrowctl.contract.paths import find_known_write_noun, parse_call
from escrowctl.contract.readable import find_list_items
from escrowctl.contract.record import make_item, make_record
from escrowctl.errors import bad_value
from escrowctl.output.view import View, view_record
from escrowctl.session import Session
from escrowctl.writes.requests import WriteOptions, make_call_request, require_writable


def call_path(
    session: Session, method: str, path: str, data: str | None, options: WriteOptions, *, yes: bool, dry_run: bool
) -> None:
    """Send the call that the user typed, and show the complete reply. `data` is the text after `--data`."""
    service = session.service
    call = parse_call(method, path, api_prefix=service.api_prefix)
    operation = call.operation
    if operation.is_write:
        noun = find_known_write_noun(f"{service.origin.path}{service.api_prefix}{operation.path}")
        if noun is not None:
            commands = ", ".join(one.command for one in WRITES if one.noun == noun)
            raise bad_value(f"api cannot write to {noun} paths: use {commands}.")
        body = read_data(data, session.runtime.stdin) if data is not None else None
        _send_write(session, operation, body, options, yes=yes, dry_run=dry_run)
    elif data is not None or dry_run:
        option = "--data" if data is not None else "--dry-run"
        raise bad_value(f"{option} is only for writes: leave {option} out for a GET.")
    else:
        session.service.refuse_key(operation.path, call.resource_id, call.query)
        reply = session.reader.fetch(call)
        if isinstance(reply, bytes):
            session.console.write_body(reply)
        else:
            session.show(_view_reply(reply, operation, session.service))


def _send_write(
    session: Session, operation: Operation, body: JsonValue, options: WriteOptions, *, yes: bool, dry_run: bool
) -> None:
    request = make_call_request(operation, body, options)
    if dry_run:
        show_dry_run(session, request)
        return
    require_writable(session.service)
    if not yes:
        method_and_url = f"{operation.method} {session.service.make_url(operation.path)}"
        session.prompt.confirm(
            [
                f"  {method_and_url}" + (f"  {encode(body)}" if body is not None else ""),
                "The service does not document this call. To send it, type yes:",
            ],
            "yes",
            why=f"{method_and_url} needs confirmation",
            declined="the call was not confirmed",
        )
    with session.signals.held():
        result = session.pipeline.run(request)
        note_replayed(session, result)
        entry = result.sent_entry
        view = _view_reply(result.record.document if result.record else None, operation, session.service)
        done = f"the service replied {entry.settlement.http_status} to {entry.intent.method} {entry.intent.url}"
        session.show(view._replace(id=view.id or entry.settlement.result_id), done=done, facts=entry.facts)
        if result.failure is not None:
            raise result.failure


def _view_reply(document: JsonValue, operation: Operation, service: Service) -> View:
    """Return the view of the complete reply `document`. If the reply is a list, add the views of its items."""
    noun, pointers = operation.noun, service.pointers
    record = make_record(document, pointers=pointers, noun=noun)
    items = find_list_items(record, noun=noun)
    views = (view_record(make_item(item, pointers=pointers, noun=noun), raw=True) for item in items or ())
    return view_record(record, raw=True)._replace(is_free_form=True, items=None if items is None else tuple(views))
