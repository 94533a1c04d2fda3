"""Calls typed by hand: what they are is decided by their path, and how they are shown is JSON."""

from dataclasses import dataclass, replace

from escrowctl.client.orders import Circumstances, Order, Terms, order_call, order_creation_of, order_release
from escrowctl.commands.arguments import check_currency
from escrowctl.commands.creations import note_replayed
from escrowctl.commands.preview import show_request
from escrowctl.commands.releases import ask_release, release_all
from escrowctl.commands.updates import update
from escrowctl.commands.webhook import register
from escrowctl.contract.body import encode
from escrowctl.contract.money import check_minor_digits, parse_amount
from escrowctl.contract.number import JsonValue, Number
from escrowctl.contract.operations import CREATE_TRANSACTION, CREATE_WEBHOOK, RELEASE_TRANSACTION, UPDATE_TRANSACTION
from escrowctl.contract.paths import Call
from escrowctl.contract.record import find_items, locate, unwrap
from escrowctl.errors import bad_value
from escrowctl.output.view import View, flatten
from escrowctl.session import Session


@dataclass(frozen=True, slots=True)
class Writing:
    """A write typed by hand: the call, its body (None: none), and what was said beside it."""

    call: Call
    body: JsonValue
    circumstances: Circumstances
    yes: bool
    dry_run: bool

    @property
    def required_body(self) -> JsonValue:
        """The body; raises EscrowctlError (exit 2) where there is none."""
        if self.body is None:
            raise bad_value("this call needs a body: give it with --data.")
        return self.body

    @property
    def required_id(self) -> str:
        """The id in the path of an operation that has one."""
        assert self.call.resource_id is not None, "its path names one"
        return self.call.resource_id


def read(session: Session, call: Call) -> None:
    """Show the whole reply to a GET: JSON, or text as it stands."""
    session.service.refuse_key(call.operation.path, call.resource_id, call.query)
    found = session.client.fetch(call)
    if isinstance(found, bytes):
        session.console.text(found)
    else:
        session.show(_view(found, noun=call.operation.noun))


def write(session: Session, writing: Writing) -> None:
    """Carry out a write under the guards of the operation that its path really is."""
    operation, said = writing.call.operation, writing.circumstances
    match operation.name:
        case CREATE_TRANSACTION.name:
            _check_creation(session, writing.required_body)
            order = order_creation_of(writing.required_body, said, operation=operation)
            _make(session, order, dry_run=writing.dry_run, verb="created")
        case CREATE_WEBHOOK.name:
            register(session, writing.required_body, said, dry_run=writing.dry_run, operation=operation)
        case RELEASE_TRANSACTION.name:
            _release(session, writing)
        case UPDATE_TRANSACTION.name:
            update(
                session,
                writing.required_id,
                writing.required_body,
                said,
                operation=operation,
                yes=writing.yes,
                unread=False,
                dry_run=writing.dry_run,
            )
        case _:
            _call_foreign(session, writing)


def _check_creation(session: Session, body: JsonValue) -> None:
    """Refuse (exit 2) by hand what tx create refuses: amounts and currencies that could be read two ways."""
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


def _release(session: Session, writing: Writing) -> None:
    operation, resource_id = writing.call.operation, writing.required_id
    terms = Terms(body=encode(writing.body) if writing.body is not None else None)
    if writing.dry_run:
        show_request(session, order_release(resource_id, terms, writing.circumstances, operation=operation))
        return
    session.service.refuse_key(operation.path, resource_id)
    prepared = session.client.prepare_release(
        terms, writing.circumstances, ask_release(session, terms.body, yes=writing.yes), operation=operation
    )
    release_all(session, prepared, [resource_id], several=False)


def _call_foreign(session: Session, writing: Writing) -> None:
    operation, body = writing.call.operation, writing.body
    order = order_call(
        operation.method, operation.path, body, writing.circumstances, resource_id=writing.call.resource_id
    )
    what = f"{operation.method} {session.service.url(operation.path)}"
    if not (writing.yes or writing.dry_run):
        session.dialogue.confirm(
            [
                f"  {what}" + (f"  {encode(body)}" if body is not None else ""),
                "What this call does is not in the interface. Type yes to send it: yes",
            ],
            "yes",
            why=f"{what} needs a confirmation",
            declined="the call was not made",
        )
    _make(session, order, dry_run=writing.dry_run, verb="called")


def _make(session: Session, order: Order, *, dry_run: bool, verb: str) -> None:
    if dry_run:
        show_request(session, order)
        return
    with session.signals.held():
        made = session.client.make(order)
        note_replayed(session, made, verb=verb)
        document = made.record.document if made.record else None
        done = f"{made.entry.intent.method} {made.entry.intent.url} was done ({made.entry.settlement.http_status})"
        view = _view(document, noun=order.operation.noun)
        session.show(replace(view, id=view.id or made.entry.settlement.result_id), done=done)
        if made.failure is not None:
            raise made.failure


def _view(document: JsonValue, *, noun: str) -> View:
    """Return the view of a whole reply: of a record, or of a list where it is one and no record itself."""
    record = unwrap(document, noun=noun)
    view = _view_record(record, noun=noun)
    items = _items(record, noun=noun) if view.id is None and view.named["amount"] is None else None
    return replace(
        view,
        document=document,
        fields=flatten(document),
        whole=True,
        items=None if items is None else tuple(_view_record(item, noun=noun) for item in items),
    )


def _view_record(record: JsonValue, *, noun: str) -> View:
    located = locate(record, noun=noun)
    named: dict[str, JsonValue] = {
        "id": located.id,
        "status": located.status,
        "amount": located.amount,
        "currency": located.currency,
        "created": located.created,
    }
    return View(record, located.id, flatten(record), named=named, record=record)


def _items(record: JsonValue, *, noun: str) -> list[JsonValue] | None:
    if isinstance(record, dict) and len(record) > 1:
        # Among other fields, an array may be a part of a record. Beside a second one, it counts as the
        # items of a list only under a usual name.
        record = {**record, "": []}
    return find_items(record, noun=noun)
