"""`--dry-run`: the exact request, the key left out."""

from escrowctl.client.headers import redact
from escrowctl.client.orders import Order
from escrowctl.contract.number import JsonValue
from escrowctl.output.view import View
from escrowctl.session import Session


def show_request(session: Session, order: Order) -> None:
    """Show what an order would send: method, URL, headers, body. Nothing is sent, read or recorded."""
    request = session.client.preview(order)
    headers = redact(request.headers)
    body = request.body.decode() if request.body is not None else None
    document: JsonValue = {
        "dry_run": True,
        "method": request.method,
        "url": request.url,
        "headers": dict(headers),
        "body": body,
    }
    fields = (("method", request.method), ("url", request.url), *headers, ("body", body or ""))
    session.console.note("dry_run", "dry run: this is what would be sent. Nothing was sent.")
    session.show(View(document=document, id=None, fields=fields))
