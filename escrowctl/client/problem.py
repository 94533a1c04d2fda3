"""What an error reply says, in one line: RFC 9457 if it is that, else the usual shapes, else its text."""

from escrowctl.client.http import Answer
from escrowctl.config.service import Service
from escrowctl.contract.json import Document, JsonValue, Number, excerpt_of
from escrowctl.contract.redaction import hide_query, hide_secrets
from escrowctl.errors import ErrorCode, Hints, command

_MAX_CHARS = 200
_USUAL_NAMES = ("detail", "message", "error_description", "title", "error", "reason")
_REDIRECTS = range(300, 400)

REFUSAL_CODES: dict[int, ErrorCode] = {
    301: ErrorCode.REDIRECTED,
    307: ErrorCode.REDIRECTED,
    308: ErrorCode.REDIRECTED,
    401: ErrorCode.NOT_AUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    409: ErrorCode.CONFLICT,
    425: ErrorCode.RATE_LIMITED,
    429: ErrorCode.RATE_LIMITED,
}
"""Status -> its error code; other refusals are `ErrorCode.REFUSED`."""


def describe_refusal(answer: Answer) -> str:
    """Return `400 "beneficiary blocked"`: the status and what the body says, at most 200 characters.

    It also says where a redirect leads to, and how long the service asks to wait.
    """
    message = _message_of(answer)
    if answer.status in _REDIRECTS and (place := answer.header("location")):
        message = hide_query(f"Location: {place[:_MAX_CHARS]}")
    wait = f" (Retry-After: {asked[:_MAX_CHARS]})" if (asked := answer.header("retry-after")) else ""
    return (f'{answer.status} "{message}"' if message else str(answer.status)) + wait


def describe_document(document: JsonValue) -> str | None:
    """Return what an error document says, at most 200 characters; None where it says nothing."""
    text = _message_in(document)
    return _one_line(text) if text else None


def refusal_hint(service: Service, status: int) -> Hints:
    """Return what to do after a refusal, where there is something to name."""
    match status:
        case 401:
            return f"the key came from {service.key_source}: check that it is the key for {service.origin}"
        case 404 if not service.sandbox:
            doubt = f"if every id gives 404, the API prefix ({service.api_prefix or '/'}) may be wrong"
            return command("config set api_prefix /PREFIX", doubt) if service.profile else doubt
        case 301 | 307 | 308:
            return f"correct the base URL (from {service.url_source}): escrowctl does not follow redirects"
        case _:
            return ()


def connection_hint(service: Service) -> str:
    """Return what to check where no connection could be opened."""
    return f"check the base URL (from {service.url_source})"


def _message_of(answer: Answer) -> str:
    reply = answer.reply
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
