"""The sandbox over HTTP: a WSGI application with one resource per path, and the calls that handlers get.

    request -> key (401) -> path (404) -> method (405) -> body (413) -> handler -> 200 or 201

Handlers get a `Call`, return a JSON object and raise `ProblemError`s: they do not know the web library.

INTERFACE.md leaves these open, so they are the sandbox's own choice. A successful call is 200, as
observed for POST and GET /transactions and GET /users, but 201 for POST /webhooks, as observed too
(section 7). Every answer carries `X-Request-Id`, the client's own if it is valid. GET /openapi.json
describes the sandbox; it is not part of the interface and needs no key.

The interface shows no query parameters, no pagination and no filters either (section 4). Every list takes
`limit` (1 to 100, 50 if not given) and `after` (an id: only older records) in the query, and answers
`{"data": [record, ...], "has_more": bool}`, newest first.
"""

import logging
import re
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Any, NamedTuple, TypeAlias

import falcon

from escrowctl.contract.operations import CREATE_WEBHOOK, DEFAULT_API_PREFIX, Operation
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, ProblemError, ProblemKind, flawed, read_json, write_json
from escrowctl.sqlite import primary_code

JSON_TYPE = "application/json"
MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")

OPENAPI_PATH = "/openapi.json"
"""The path of the sandbox's own document. It alone needs no key, and is not part of the interface (section 5)."""

RECOGNISED_KEY = "escrowctl.idempotency_key"
"""The name in the WSGI environment of the Idempotency-Key that the sandbox recognises."""

_LOG = logging.getLogger(__name__)
# Without its own handler the log would reach stderr, which is for the command line only.
_LOG.addHandler(logging.NullHandler())


class Call(NamedTuple):
    """An authenticated request: the id in its path ("" if it has none), and the rest unchanged."""

    resource_id: str
    query: Mapping[str, str | list[str]]
    content_type: str
    body: bytes
    idempotency_key: str = ""
    """The key of a write, if the sandbox is set to recognise it."""

    def json_object(self) -> JsonObject:
        """The body as a JSON object; 415 or 400 otherwise.

        INTERFACE.md section 5: requests with a body carry `Content-Type: application/json`. A
        charset parameter is ignored (RFC 8259 gives it no meaning): the text is always UTF-8.
        """
        if self.content_type.partition(";")[0].strip().lower() != JSON_TYPE:
            raise ProblemError(ProblemKind.NOT_JSON_TYPE, f"A body needs the header Content-Type: {JSON_TYPE}.")
        value = read_json(self.body)
        if not isinstance(value, Mapping):
            raise flawed({"pointer": "#", "detail": "The body must be a JSON object."})
        return value

    def ignore_body(self) -> None:
        """Accept no body or a JSON object, which has no effect; 415 or 400 for anything else."""
        if self.body:
            self.json_object()


Handler: TypeAlias = Callable[[Call], JsonObject]


class Resource:
    """One path: a responder per method under the names that Falcon looks for (`on_get`, `on_put`)."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def add(self, method: str, handler: Handler, status: int) -> None:
        """Answer a method with the object that the handler returns, and with this status."""

        def respond(request: falcon.Request, response: falcon.Response, **path: str) -> None:
            length = request.content_length or 0
            if length > MAX_BODY_BYTES:
                raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
            body, key = request.bounded_stream.read(length), request.env.get(RECOGNISED_KEY, "")
            call = Call(path.get("id", ""), request.params, request.content_type or "", body, key)
            response.text = write_json(handler(call))
            response.status = status
            response.content_type = JSON_TYPE

        self.methods = sorted([*self.methods, method])
        setattr(self, f"on_{method.lower()}", respond)


class Middleware:
    """Falcon middleware: checks each request before its handler runs, and puts its id into the answer."""

    def __init__(self, *, key: str, before: Callable[[], None]) -> None:
        self._expected = f"bearer {key}".encode()
        self._before = before

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        """Identify and authenticate: without the key a client learns nothing about paths or records."""
        offered_id = request.get_header(REQUEST_ID_HEADER) or ""
        request.context.id = offered_id if REQUEST_ID.fullmatch(offered_id) else f"req_{secrets.token_hex(8)}"
        if request.path == OPENAPI_PATH:
            return
        scheme, _, key = (request.get_header("Authorization") or "").partition(" ")
        offered = f"{scheme.lower()} {key}".encode("utf-8", "replace")
        if not compare_digest(offered, self._expected):
            raise ProblemError(
                ProblemKind.UNAUTHENTICATED,
                "This call needs the header Authorization: Bearer <API_KEY>, with the key of this sandbox.",
            )

    def process_resource(
        self, request: falcon.Request, _response: falcon.Response, resource: Resource, _params: dict[str, Any]
    ) -> None:
        """Refuse requests that Falcon would accept: empty segments in a path, HEAD, OPTIONS, unknown methods."""
        if "//" in request.path or request.path.endswith("/"):
            raise no_such_path(request)
        if request.method not in resource.methods:
            allowed = ", ".join(resource.methods)
            raise ProblemError(
                ProblemKind.METHOD_NOT_ALLOWED, f"This path supports {allowed}.", headers={"Allow": allowed}
            )
        if request.path != OPENAPI_PATH:
            self._before()

    def process_response(self, request: falcon.Request, response: falcon.Response, *_: object) -> None:
        """Send the request's id with every answer."""
        response.set_header(REQUEST_ID_HEADER, request.context.id)


def build_app(
    handlers: Mapping[Operation, Handler],
    more: Mapping[str, Mapping[str, Handler]],
    *,
    key: str,
    before: Callable[[], None],
) -> "falcon.App[falcon.Request, falcon.Response]":
    """Build the WSGI app. `more` has the handlers of paths outside the interface, by path and method.

    Each call of a handler, except for the OpenAPI document, follows a call of `before`.

    A 500 does not show the exception: it is logged. A ConnectionError of a handler is not answered: the app raises it.
    """
    app = falcon.App(middleware=[Middleware(key=key, before=before)])
    resources: defaultdict[str, Resource] = defaultdict(Resource)
    for operation, handler in handlers.items():
        path = DEFAULT_API_PREFIX + operation.path
        resources[path].add(operation.method, handler, success_status(operation))
    for path, by_method in more.items():
        for method, handler in by_method.items():
            resources[path].add(method, handler, 200)
    for path, resource in resources.items():
        app.add_route(path, resource)
    for kind in (Exception, falcon.HTTPError):
        app.add_error_handler(kind, _answer_error)
    return app


def success_status(operation: Operation) -> int:
    """The status of a successful call: 201 for POST /webhooks, else 200 (observed, INTERFACE.md section 7)."""
    return 201 if operation is CREATE_WEBHOOK else 200


def no_such_path(request: falcon.Request) -> ProblemError:
    """A 404 for a path that no operation has."""
    return ProblemError(ProblemKind.NO_SUCH_PATH, f"There is no path {request.path!r} here.")


def _answer_error(request: falcon.Request, response: falcon.Response, error: Exception, _params: object) -> None:
    match error:
        case ConnectionError():
            raise error
        case ProblemError():
            problem = error
        case falcon.HTTPNotFound():
            problem = no_such_path(request)
        case falcon.HTTPBadRequest():
            problem = ProblemError(ProblemKind.BAD_REQUEST, "The method or a header cannot be understood.")
        case sqlite3.OperationalError() if primary_code(error) == sqlite3.SQLITE_BUSY:
            detail = "Other processes locked the store for too long; nothing was changed."
            problem = ProblemError(ProblemKind.STORE_BUSY, detail)
        case _:
            detail = "Internal error. The request may or may not have been carried out."
            problem = ProblemError(ProblemKind.INTERNAL, detail)
            _LOG.error("request %s failed", request.context.id, exc_info=error)
    response.status = problem.kind.status
    response.text = write_json(problem.document(request_id=request.context.id))
    response.content_type = PROBLEM_TYPE
    response.set_headers(problem.headers)
