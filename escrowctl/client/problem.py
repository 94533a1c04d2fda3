"""Describe error replies: RFC 9457, other usual JSON forms, or plain text. Give hints what to do next."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from escrowctl.client.http import Answer, Fault
from escrowctl.config.service import Service
from escrowctl.contract.json import Defect, Document, JsonValue, Number, UnreadableReply, fold_name, make_excerpt
from escrowctl.contract.redaction import hide_in_text, hide_private_values, hide_unknown_texts
from escrowctl.errors import ErrorCode, Hint, command

_MAX_CHARS, _MAX_SENTENCES, _MAX_HEADER_CHARS = 1000, 50, 200
_MAX_TEXT_BYTES = 64 * 1024
_MESSAGE_NAMES = ("detail", "message", "error_description", "title", "error", "reason", "msg", "description")
"""Fields with the text of an error, the most specific first (RFC 9457 section 3.1.4)."""

_NESTED_ERROR_NAMES = (
    *("errors", "error", "details", "detail", "issues", "violations", "field_errors", "fieldErrors"),
    *("fieldViolations", "invalid_params", "invalid-params", "validation_errors"),
)
"""Fields with nested errors: a list of errors, or an object that maps names of fields to errors."""

_FIELD_NAMES = ("field", "param", "parameter", "property", "attribute", "pointer", "path", "loc", "name")
"""Fields of an error object, or of its `source` object, with the name of the field that is wrong."""

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-trace-id")
_REQUEST_ID_NAMES = frozenset({"requestid", "correlationid", "traceid"})
_UNTRUSTED_ISSUER = "self.signed certificate|local issuer certificate"
_PROXY_NEEDS_LOGIN = ": 407 "
_WRONG_PATH_MESSAGE = r"not found[.!]?$|\b(route|path|endpoint|url)\b"

REDIRECT_STATUSES = range(300, 400)
"""Statuses of redirects (RFC 9110 section 15.4). escrowctl follows none of them."""

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
"""HTTP status -> error code. A refusal with a status that is not listed is `ErrorCode.REFUSED`."""


def describe_refusal(answer: Answer) -> str:
    """Return the reply's status and message, such as `422 "amount: must be at least 1.00"`.

    A redirect has its target in place of the message. Retry-After, if present, follows in brackets.
    """
    text = describe_error_document(answer.reply.value) if isinstance(answer.reply, Document) else None
    message = text or _make_safe_line(make_excerpt(answer.body))
    location, retry_after = answer.find_header("location"), answer.find_header("retry-after")
    if answer.status in REDIRECT_STATUSES and location:
        says = f', a redirect to "{hide_in_text(location[:_MAX_HEADER_CHARS])}"'
    else:
        says = f' "{message}"' if message else ""
    return f"{answer.status}{says}" + (f" (Retry-After: {retry_after[:_MAX_HEADER_CHARS]})" if retry_after else "")


def describe_error_document(document: JsonValue) -> str | None:
    """Return the messages of an error document, joined by `; ` and shortened; None if it has no message.

    If the document names the field of an error, the message begins with that name.
    """
    sentences = dict.fromkeys(islice(_list_error_messages(document), _MAX_SENTENCES + 1))
    return _make_safe_line("; ".join(sentence.rstrip(". ") for sentence in sentences)) or None


def list_reply_facts(answer: Answer, sent_request_id: str, *, may_hold_secret: bool = False) -> dict[str, object]:
    """Return the facts of a reply for a log: `body` (JSON or text) and `service_request_id`, each if present.

    `sent_request_id` is escrowctl's own request id: if the reply repeats it, it does not count. `may_hold_secret`:
    stars replace texts of a JSON body that may be secret, and a body that is not JSON is left out.
    """
    facts: dict[str, object] = {}
    if isinstance(answer.reply, Document):
        document = answer.reply.value
        facts["body"] = hide_unknown_texts(document) if may_hold_secret else hide_private_values(document)
    elif answer.body.strip() and not may_hold_secret:
        facts["body"] = hide_in_text(answer.body[:_MAX_TEXT_BYTES].decode("utf-8", errors="replace"))
    found = next((name for name in list_request_ids(answer) if name != sent_request_id), None)
    return facts | ({"service_request_id": found} if found else {})


def advise_refusal(service: Service, status: int, answer: Answer | None = None) -> tuple[Hint, ...]:
    """Return hints for a refused request, often none. `answer` is None if only the status is known."""
    match status:
        case 401:
            return (Hint(f"the key came from {service.key_source}: check that it is the key for {service.origin}"),)
        case 404 if not service.sandbox and answer is not None and not _says_record_missing(answer):
            return (command("doctor", f"to check the API prefix ({service.api_prefix or '/'}), if all calls give 404"),)
        case _ if status in REDIRECT_STATUSES:
            return (Hint(f"check the base URL (from {service.url_source}): escrowctl does not follow redirects"),)
        case _:
            return ()


def is_html(answer: Answer) -> bool:
    """Whether the body of a reply is HTML."""
    return isinstance(answer.reply, UnreadableReply) and answer.reply.defect is Defect.HTML


def advise_connection(service: Service, why: str) -> Hint:
    """Return a hint for a failed connection. `why` is the text of `Exchange.why`."""
    if Fault.PROXY.value in why and _PROXY_NEEDS_LOGIN in why:
        return Hint("put the proxy's user and password into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT")
    if Fault.PROXY.value in why:
        return Hint(f"check the proxy, or list {service.origin.host} in NO_PROXY if the host needs no proxy")
    if re.search(_UNTRUSTED_ISSUER, why):
        return Hint(
            "set ESCROWCTL_CA_BUNDLE to a file with the CA certificate of the service",
            f"if you trust the certificate of {service.origin.host}",
        )
    return Hint(f"check the base URL (from {service.url_source})")


def _make_safe_line(text: str) -> str:
    """Return a text of the service on one line, shortened to 1,000 characters, with stars in place of secrets."""
    line = " ".join(text.split())
    return hide_in_text(line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]} ...")


def _says_record_missing(answer: Answer) -> bool:
    """Whether a 404 reply has a JSON message, and the message does not look like that for a wrong path."""
    message = describe_error_document(answer.reply.value) if isinstance(answer.reply, Document) else None
    return message is not None and not re.search(_WRONG_PATH_MESSAGE, message, re.IGNORECASE)


def _list_error_messages(value: JsonValue, field: str = "") -> Iterator[str]:
    """Yield each message in a part of an error document, as `field: message`. `field` is the enclosing field."""
    if isinstance(value, dict):
        yield from _list_object_messages(value, _find_field_name(value) or field)
    elif isinstance(value, list):
        for item in value:
            yield from _list_error_messages(item, field)
    elif isinstance(value, str | Number) and str(value).strip():
        yield f"{field}: {value}" if field else str(value)


def _list_object_messages(error: dict[str, JsonValue], field: str) -> Iterator[str]:
    texts = (error.get(name) for name in _MESSAGE_NAMES)
    own = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    if own is not None:
        yield from _list_error_messages(own, field)
    parts = [part for name in _NESTED_ERROR_NAMES if isinstance(part := error.get(name), dict | list)]
    for part in parts:
        yield from _list_error_messages(part, field)
    if own is None and not parts:
        # Such an object maps names of fields to their errors.
        for name, item in error.items():
            yield from _list_error_messages(item, f"{field}.{name}" if field else name)


def _find_field_name(error: Mapping[str, JsonValue]) -> str | None:
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
    """Yield the request ids in a reply: first from its headers, then from its body."""
    for header in _REQUEST_ID_HEADERS:
        if value := answer.find_header(header):
            yield value[:_MAX_HEADER_CHARS]
    document = answer.reply.value if isinstance(answer.reply, Document) else None
    places = [document, *document.values()] if isinstance(document, dict) else []
    for place in places:
        for name, item in place.items() if isinstance(place, dict) else ():
            if isinstance(item, str) and fold_name(name) in _REQUEST_ID_NAMES:
                yield item[:_MAX_HEADER_CHARS]
