"""The sandbox over HTTP: the router, the `Call` that a handler gets, and the `Answer` to a request.

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
from collections.abc import Callable, Mapping
from hmac import compare_digest
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import parse_qs

from escrowctl.contract.operations import CREATE_WEBHOOK, DEFAULT_API_PREFIX, Operation, match_path
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, ProblemError, ProblemKind, invalid, read_json, write_json
from escrowctl.sqlite import primary_code

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

JSON_TYPE = "application/json"
MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._~-]{1,128}")

OPENAPI_PATH = "/openapi.json"
"""The path of the sandbox's OpenAPI document. It is not part of the interface, and the only path without a key."""

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


class Answer(NamedTuple):
    """The answer to a request. `content` is its JSON document or its text; None if it has no body."""

    status: int
    content: JsonObject | str | None
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return (write_json(self.content) if isinstance(self.content, Mapping) else self.content or "").encode()


def make_problem_answer(problem: ProblemError, *, request_id: str) -> Answer:
    """Return the answer to a request that is refused or fails."""
    return Answer(problem.kind.status, problem.make_body(request_id=request_id), PROBLEM_TYPE, problem.headers)


class Router:
    """Calls the handler of a request.

    `handlers` has the operations of the interface, `extra_handlers` the paths outside the interface, by path and
    method. `before_call` is called before each handler except that of the OpenAPI document.

    An unexpected exception is logged and gets a 500 without details. A handler's ConnectionError is raised.
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

    def answer(self, environ: "WSGIEnvironment") -> Answer:
        """Return the answer to one request."""
        offered_id = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = offered_id if REQUEST_ID_PATTERN.fullmatch(offered_id) else f"req_{secrets.token_hex(8)}"
        try:
            answer = self._call_handler(environ)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - a server answers every request
            answer = make_problem_answer(_find_problem(error, request_id), request_id=request_id)
        return answer._replace(headers={**answer.headers, REQUEST_ID_HEADER: request_id})

    def _call_handler(self, environ: "WSGIEnvironment") -> Answer:
        """Return the answer to a successful call. Raises ProblemError."""
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
            environ.get("HTTP_IDEMPOTENCY_KEY", ""),
        )
        return Answer(status, handler(call))

    def check_key(self, environ: "WSGIEnvironment") -> None:
        """Raise ProblemError 401 without the API key: a client without the key learns nothing about any path."""
        scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if not compare_digest(f"{scheme.lower()} {key}".encode("utf-8", "replace"), self._expected):
            message = "This call needs the header Authorization: Bearer <API_KEY>, with the key of this sandbox."
            raise ProblemError(ProblemKind.UNAUTHENTICATED, message)


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
