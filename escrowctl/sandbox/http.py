"""The sandbox over HTTP: a WSGI application, and the `Call` that a handler gets.

    request -> key (401) -> path (404) -> method (405) -> body (413) -> handler -> 200 or 201

A handler gets a `Call`, returns a JSON object or raises ProblemError. It knows nothing of WSGI.

A successful POST /webhooks gets 201, every other successful call 200. A status that INTERFACE.md section 7 does not
list is the sandbox's own choice. Every answer has an `X-Request-Id`: that of the request if it is valid, else a new
one. GET /openapi.json describes the sandbox; this path is not part of the interface and needs no key.

The interface shows no query parameters, pagination or filters (section 4). In the sandbox, every list of the
interface takes `limit` (1 to 100, 50 if not given) and `after` (an id: only older records) in the query. The reply
is `{"data": [record, ...], "has_more": bool}`, newest first.
"""

import logging
import re
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from hmac import compare_digest
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import parse_qs

from escrowctl.contract.operations import CREATE_WEBHOOK, DEFAULT_API_PREFIX, Operation, match_path
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, ProblemError, ProblemKind, invalid, read_json, write_json
from escrowctl.sqlite import primary_code

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

JSON_TYPE = "application/json"
MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._~-]{1,128}")

OPENAPI_PATH = "/openapi.json"
"""The path of the sandbox's OpenAPI document. It is not part of the interface, and the only path without a key."""

IDEMPOTENCY_KEY_NAME = "escrowctl.idempotency_key"
"""The WSGI environment has the Idempotency-Key here; "" or missing if the variant `idempotent` is off."""

_LOG = logging.getLogger(__name__)
# Without its own handler the log would reach stderr, which is for the command line only.
_LOG.addHandler(logging.NullHandler())


class Call(NamedTuple):
    """One request, as a handler gets it. `resource_id` is the id in its path, "" if the path has none."""

    resource_id: str
    query: Mapping[str, str | list[str]]
    content_type: str
    body: bytes
    idempotency_key: str = ""
    """The Idempotency-Key if the variant `idempotent` is on, else ""."""

    def read_object(self) -> JsonObject:
        """Return the body. Raises ProblemError: 415 if the Content-Type is not JSON, 400 if the body is no object.

        INTERFACE.md section 5: requests with a body carry `Content-Type: application/json`. Its `charset` is
        ignored (RFC 8259 gives it no meaning): the text is always UTF-8.
        """
        if self.content_type.partition(";")[0].strip().lower() != JSON_TYPE:
            raise ProblemError(ProblemKind.NOT_JSON_TYPE, f"A body needs the header Content-Type: {JSON_TYPE}.")
        value = read_json(self.body)
        if not isinstance(value, Mapping):
            raise invalid({"pointer": "#", "detail": "The body must be a JSON object."})
        return value

    def check_unused_body(self) -> None:
        """Check an unused body: it may be missing or a JSON object. Raises ProblemError 415 or 400."""
        if self.body:
            self.read_object()


Handler: TypeAlias = Callable[[Call], JsonObject]


class SandboxApp:
    """The WSGI application.

    `handlers` has the operations of the interface, `extra_handlers` the paths outside the interface, by path and
    method. `before_call` is called before each handler except that of the OpenAPI document.

    An unexpected exception is logged and gets a 500 without details. A handler's ConnectionError leaves the app.
    """

    def __init__(
        self,
        handlers: Mapping[Operation, Handler],
        extra_handlers: Mapping[str, Mapping[str, Handler]],
        *,
        key: str,
        before_call: Callable[[], None],
    ) -> None:
        self._expected = f"bearer {key}".encode()
        self._before_call = before_call
        self._routes: defaultdict[str, dict[str, tuple[Handler, int]]] = defaultdict(dict)
        for operation, handler in handlers.items():
            self._routes[DEFAULT_API_PREFIX + operation.path][operation.method] = handler, success_status(operation)
        for path, by_method in extra_handlers.items():
            self._routes[path] |= {method: (handler, 200) for method, handler in by_method.items()}

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        offered_id = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = offered_id if REQUEST_ID_PATTERN.fullmatch(offered_id) else f"req_{secrets.token_hex(8)}"
        headers = {"Content-Type": JSON_TYPE}
        try:
            status, document = self._call_handler(environ)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - a server answers every request
            problem = _find_problem(error, request_id)
            status, document = problem.kind.status, problem.make_body(request_id=request_id)
            headers = {"Content-Type": PROBLEM_TYPE, **problem.headers}
        content = write_json(document).encode()
        headers |= {"Content-Length": str(len(content)), REQUEST_ID_HEADER: request_id}
        start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]

    def _call_handler(self, environ: "WSGIEnvironment") -> tuple[int, JsonObject]:
        """Return the status and body of a successful call. Raises ProblemError."""
        # PEP 3333: the bytes of the path, as Latin-1.
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        if path != OPENAPI_PATH:
            self.check_key(environ)
        found = ((match_path(template, path), methods) for template, methods in self._routes.items())
        match, methods = next((one for one in found if one[0]), (None, {}))
        if match is None:
            raise ProblemError(ProblemKind.NO_SUCH_PATH, f"There is no path {path!r} here.")
        if environ["REQUEST_METHOD"] not in methods:
            allowed = ", ".join(sorted(methods))
            detail = f"This path supports {allowed}."
            raise ProblemError(ProblemKind.METHOD_NOT_ALLOWED, detail, headers={"Allow": allowed})
        if path != OPENAPI_PATH:
            self._before_call()
        body = environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        handler, status = methods[environ["REQUEST_METHOD"]]
        call = Call(
            match.groupdict().get("id", ""),
            {name: values[0] if len(values) == 1 else values for name, values in query.items()},
            environ.get("CONTENT_TYPE", ""),
            body,
            environ.get(IDEMPOTENCY_KEY_NAME, ""),
        )
        return status, handler(call)

    def check_key(self, environ: "WSGIEnvironment") -> None:
        """Raise ProblemError 401 without the API key: a client without the key learns nothing about any path."""
        scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if not compare_digest(f"{scheme.lower()} {key}".encode("utf-8", "replace"), self._expected):
            raise ProblemError(
                ProblemKind.UNAUTHENTICATED,
                "This call needs the header Authorization: Bearer <API_KEY>, with the key of this sandbox.",
            )


def success_status(operation: Operation) -> int:
    """Return the status of a successful call: 201 for POST /webhooks, else 200 (INTERFACE.md section 7)."""
    return 201 if operation is CREATE_WEBHOOK else 200


def _find_problem(error: Exception, request_id: str) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, sqlite3.OperationalError) and primary_code(error) == sqlite3.SQLITE_BUSY:
        detail = "Other processes locked the store for too long; nothing was changed."
        return ProblemError(ProblemKind.STORE_BUSY, detail)
    _LOG.error("request %s failed", request_id, exc_info=error)
    return ProblemError(ProblemKind.INTERNAL, "Internal error. The request may or may not have been carried out.")
