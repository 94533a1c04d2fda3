"""What an error reply says, in one line: RFC 9457 if it is that, else the usual shapes, else its text."""

from escrowctl.client.exchange import Answer
from escrowctl.contract.number import JsonValue, Number
from escrowctl.contract.redaction import hide_query, hide_secrets
from escrowctl.contract.reply import Document, excerpt_of

_MAX_CHARS = 200
_USUAL_NAMES = ("detail", "message", "error_description", "title", "error", "reason")
_REDIRECTS = range(300, 400)


def describe_refusal(answer: Answer) -> str:
    """Return `400 "beneficiary blocked"`: the status and what the body says, at most 200 characters.

    Where a redirect leads to, and how long the service asks to wait, stand there too.
    """
    said = _said(answer)
    if answer.status in _REDIRECTS and (place := answer.header("location")):
        said = hide_query(f"Location: {place[:_MAX_CHARS]}")
    wait = f" (Retry-After: {asked[:_MAX_CHARS]})" if (asked := answer.header("retry-after")) else ""
    return (f'{answer.status} "{said}"' if said else str(answer.status)) + wait


def describe_document(document: JsonValue) -> str | None:
    """Return what an error document says, at most 200 characters; None where it says nothing."""
    text = _message_in(document)
    return _one_line(text) if text else None


def _said(answer: Answer) -> str:
    reply = answer.read()
    text = _message_in(reply.value) if isinstance(reply, Document) else None
    return _one_line(text or excerpt_of(answer.body))


def _one_line(text: str) -> str:
    """Return a service's text as a message or the journal may quote it."""
    return hide_secrets(" ".join(text.split())[:_MAX_CHARS])


def _message_in(value: JsonValue) -> str | None:
    """Return the most telling text of an error document, RFC 9457's `detail` first."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        return next((text for item in value if (text := _message_in(item))), None)
    if not isinstance(value, dict):
        return value.text if isinstance(value, Number) else None
    for name in _USUAL_NAMES:
        if text := _message_in(value.get(name)):
            return text
    return _message_in(value.get("errors"))
