"""The text of an error reply: RFC 9457 or a usual shape, else the plain text; and hints for the next step."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from escrowctl.client.http import Answer, Fault
from escrowctl.config.service import Service
from escrowctl.contract.json import Defect, Document, JsonValue, Number, UnreadableReply, fold_name, make_excerpt
from escrowctl.contract.redaction import hide_in_text, hide_unknown, hide_values
from escrowctl.errors import ErrorCode, Hint, command

_MOST_CHARS, _MOST_SENTENCES, _MOST_HEADER_CHARS = 1000, 50, 200
_MOST_TEXT_BYTES = 64 * 1024
_MESSAGE_NAMES = ("detail", "message", "error_description", "title", "error", "reason", "msg", "description")
"""Fields that hold a sentence, the most telling first (RFC 9457 section 3.1.4)."""

_NESTED_ERROR_NAMES = (
    *("errors", "error", "details", "detail", "issues", "violations", "field_errors", "fieldErrors"),
    *("fieldViolations", "invalid_params", "invalid-params", "validation_errors"),
)
"""Fields that hold further errors: a list of them, or an object with the names of fields."""

_FIELD_NAMES = ("field", "param", "parameter", "property", "attribute", "pointer", "path", "loc", "name")
"""Fields that name the field in error; `source` may hold one of them."""

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-trace-id")
_REQUEST_ID_NAMES = frozenset({"requestid", "correlationid", "traceid"})
_UNTRUSTED_ISSUER = "self.signed certificate|local issuer certificate"
_NEEDS_LOGIN = ": 407 "
_PATH_NOT_FOUND = r"not found[.!]?$|\b(route|path|endpoint|url)\b"

REDIRECTS = range(300, 400)
"""Statuses that name another place (RFC 9110 section 15.4); none is followed."""

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
    """Return the status and the body's message, such as `422 "amount: must be at least 1.00"`.

    The message has at most 1,000 characters. For a redirect, it is the target. Retry-After follows in brackets.
    """
    text = describe_document(answer.reply.value) if isinstance(answer.reply, Document) else None
    message = text or _one_line(make_excerpt(answer.body))
    location, retry_after = answer.find_header("location"), answer.find_header("retry-after")
    if answer.status in REDIRECTS and location:
        says = f', a redirect to "{hide_in_text(location[:_MOST_HEADER_CHARS])}"'
    else:
        says = f' "{message}"' if message else ""
    return f"{answer.status}{says}" + (f" (Retry-After: {retry_after[:_MOST_HEADER_CHARS]})" if retry_after else "")


def describe_document(document: JsonValue) -> str | None:
    """Return the messages of an error document, at most 1,000 characters; None if it has none.

    Each error has the name of its field before it, if the document names one.
    """
    sentences = dict.fromkeys(islice(_list_messages(document), _MOST_SENTENCES + 1))
    return _one_line("; ".join(sentence.rstrip(". ") for sentence in sentences)) or None


def list_reply_facts(answer: Answer, own_id: str, *, may_hold_secret: bool = False) -> dict[str, object]:
    """Return the facts of a reply that a log needs: `body` (a document, or a text), and `service_request_id`.

    `own_id` is the request id that was sent: it is no id of the service, even if the reply repeats it. With
    `may_hold_secret`, `body` has only texts that are known to be harmless.
    """
    facts: dict[str, object] = {}
    if isinstance(answer.reply, Document):
        document = answer.reply.value
        facts["body"] = hide_unknown(document) if may_hold_secret else hide_values(document)
    elif answer.body.strip() and not may_hold_secret:
        text = answer.body[:_MOST_TEXT_BYTES].decode("utf-8", errors="replace")
        facts["body"] = hide_in_text(text)
    found = next((name for name in list_request_ids(answer) if name != own_id), None)
    return facts | ({"service_request_id": found} if found else {})


def advise_refusal(service: Service, status: int, answer: Answer | None = None) -> tuple[Hint, ...]:
    """Return the hints after a refusal; often none. `answer` is None if an earlier command was refused."""
    match status:
        case 401:
            return (Hint(f"the key came from {service.key_source}: check that it is the key for {service.origin}"),)
        case 404 if not service.sandbox and answer is not None and not _says_record_missing(answer):
            return (command("doctor", f"if all calls give 404, to check the API prefix ({service.api_prefix or '/'})"),)
        case _ if status in REDIRECTS:
            return (Hint(f"check the base URL (from {service.url_source}): escrowctl does not follow redirects"),)
        case _:
            return ()


def is_web_page(answer: Answer) -> bool:
    """Whether a reply is a web page: HTML."""
    return isinstance(answer.reply, UnreadableReply) and answer.reply.defect is Defect.HTML


def advise_connection(service: Service, why: str) -> Hint:
    """Return the hint after a failed connection. `why` is `Exchange.why`."""
    if Fault.PROXY.value in why and _NEEDS_LOGIN in why:
        return Hint("put the proxy's user and password into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT")
    if Fault.PROXY.value in why:
        return Hint(f"check the proxy, or list {service.origin.host} in NO_PROXY if it needs none")
    if re.search(_UNTRUSTED_ISSUER, why):
        return Hint(
            "set ESCROWCTL_CA_BUNDLE to a file with the certificate of its issuer",
            f"if you trust the certificate of {service.origin.host}",
        )
    return Hint(f"check the base URL (from {service.url_source})")


def _one_line(text: str) -> str:
    """Return a service's text for a message or the journal: one line, shortened, with stars for secrets."""
    line = " ".join(text.split())
    return hide_in_text(line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]} ...")


def _says_record_missing(answer: Answer) -> bool:
    """Whether a 404 says in JSON that a record was not found. For a wrong path it has HTML, nothing, or other words."""
    message = describe_document(answer.reply.value) if isinstance(answer.reply, Document) else None
    return message is not None and not re.search(_PATH_NOT_FOUND, message, re.IGNORECASE)


def _list_messages(value: JsonValue, field: str = "") -> Iterator[str]:
    """Yield the message of each error in a document, after the name of the field that the error is about."""
    if isinstance(value, dict):
        yield from _list_messages_of(value, _find_field(value) or field)
    elif isinstance(value, list):
        for item in value:
            yield from _list_messages(item, field)
    elif isinstance(value, str | Number) and str(value).strip():
        yield f"{field}: {value}" if field else str(value)


def _list_messages_of(error: dict[str, JsonValue], field: str) -> Iterator[str]:
    own = next((text for name in _MESSAGE_NAMES if isinstance(text := error.get(name), str) and text.strip()), None)
    if own is not None:
        yield from _list_messages(own, field)
    parts = [part for name in _NESTED_ERROR_NAMES if isinstance(part := error.get(name), dict | list)]
    for part in parts:
        yield from _list_messages(part, field)
    if own is None and not parts:
        # Its names are then the names of the fields in error.
        for name, item in error.items():
            yield from _list_messages(item, f"{field}.{name}" if field else name)


def _find_field(error: Mapping[str, JsonValue]) -> str | None:
    """Return the name of the field that an error is about, or None. A path given as a list is joined by dots."""
    source = error.get("source")
    places: Iterable[Mapping[str, JsonValue]] = (error, source) if isinstance(source, dict) else (error,)
    for place in places:
        for name in _FIELD_NAMES:
            named = place.get(name)
            if isinstance(named, str) and named:
                return named
            if isinstance(named, list) and name in ("path", "loc"):
                return ".".join(str(step) for step in named if isinstance(step, str | Number))
    return None


def list_request_ids(answer: Answer) -> Iterator[str]:
    """Yield the request ids that a reply names, in its headers or its body."""
    for header in _REQUEST_ID_HEADERS:
        if value := answer.find_header(header):
            yield value[:_MOST_HEADER_CHARS]
    document = answer.reply.value if isinstance(answer.reply, Document) else None
    places = [document, *document.values()] if isinstance(document, dict) else []
    for place in places:
        for name, item in place.items() if isinstance(place, dict) else ():
            if isinstance(item, str) and fold_name(name) in _REQUEST_ID_NAMES:
                yield item[:_MOST_HEADER_CHARS]
