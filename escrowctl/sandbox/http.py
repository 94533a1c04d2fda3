"""The sandbox over HTTP: a WSGI application with one resource per path, and the `Call` that a handler gets.

    request -> key (401) -> path (404) -> method (405) -> body (413) -> handler -> 200 or 201

A handler gets a `Call`, returns a JSON object or raises ProblemError. It does not use the web library.

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
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Any, NamedTuple, TypeAlias

import falcon

from escrowctl.contract.operations import CREATE_WEBHOOK, DEFAULT_API_PREFIX, Operation
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, ProblemError, ProblemKind, invalid, read_json, write_json
from escrowctl.sqlite import primary_code

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


class Resource:
    """One path, with a responder for each method. Falcon finds a responder by its name: `on_get`, `on_put`."""

    methods: Sequence[str] = ()

    def add_handler(self, method: str, handler: Handler, status: int) -> None:
        """Add the responder for a method. It sends the object that `handler` returns, with `status`."""

        def respond(request: falcon.Request, response: falcon.Response, **path: str) -> None:
            length = request.content_length or 0
            if length > MAX_BODY_BYTES:
                raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
            body, key = request.bounded_stream.read(length), request.env.get(IDEMPOTENCY_KEY_NAME, "")
            call = Call(path.get("id", ""), request.params, request.content_type or "", body, key)
            response.text = write_json(handler(call))
            response.status = status
            response.content_type = JSON_TYPE

        self.methods = sorted([*self.methods, method])
        setattr(self, f"on_{method.lower()}", respond)


class Middleware:
    """Falcon middleware. It checks each request before the handler runs, and adds the request id to the answer."""

    def __init__(self, *, key: str, before_call: Callable[[], None]) -> None:
        self._expected = f"bearer {key}".encode()
        self._before_call = before_call

    def process_request(self, request: falcon.Request, _response: falcon.Response) -> None:
        """Give the request an id and check its API key. A client without the key learns nothing about any path."""
        offered_id = request.get_header(REQUEST_ID_HEADER) or ""
        request.context.id = offered_id if REQUEST_ID_PATTERN.fullmatch(offered_id) else f"req_{secrets.token_hex(8)}"
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
        self, request: falcon.Request, response: falcon.Response, resource: Resource, _params: dict[str, Any]
    ) -> None:
        """Refuse requests that Falcon would accept: empty segments in a path, HEAD, OPTIONS, unknown methods."""
        if "//" in request.path or request.path.endswith("/"):
            raise falcon.HTTPNotFound
        if request.method not in resource.methods:
            allowed = ", ".join(resource.methods)
            response.set_header("Allow", allowed)
            raise ProblemError(ProblemKind.METHOD_NOT_ALLOWED, f"This path supports {allowed}.")
        if request.path != OPENAPI_PATH:
            self._before_call()

    def process_response(self, request: falcon.Request, response: falcon.Response, *_: object) -> None:
        """Send the request's id with every answer."""
        response.set_header(REQUEST_ID_HEADER, request.context.id)


def build_app(
    handlers: Mapping[Operation, Handler],
    extra_handlers: Mapping[str, Mapping[str, Handler]],
    *,
    key: str,
    before_call: Callable[[], None],
) -> "falcon.App[falcon.Request, falcon.Response]":
    """Return the WSGI app. `extra_handlers` has the handlers of paths outside the interface, by path and method.

    `before_call` is called before each handler except that of the OpenAPI document.

    An unexpected exception is logged and gets a 500 without details. A handler's ConnectionError leaves the app.
    """
    app = falcon.App(middleware=[Middleware(key=key, before_call=before_call)])
    resources: defaultdict[str, Resource] = defaultdict(Resource)
    for operation, handler in handlers.items():
        path = DEFAULT_API_PREFIX + operation.path
        resources[path].add_handler(operation.method, handler, success_status(operation))
    for path, by_method in extra_handlers.items():
        for method, handler in by_method.items():
            resources[path].add_handler(method, handler, 200)
    for path, resource in resources.items():
        app.add_route(path, resource)
    for kind in (Exception, falcon.HTTPError):
        app.add_error_handler(kind, _answer_error)
    return app


def success_status(operation: Operation) -> int:
    """Return the status of a successful call: 201 for POST /webhooks, else 200 (INTERFACE.md section 7)."""
    return 201 if operation is CREATE_WEBHOOK else 200


def _answer_error(request: falcon.Request, response: falcon.Response, error: Exception, _params: object) -> None:
    match error:
        case ConnectionError():
            raise error
        case ProblemError():
            problem = error
        case falcon.HTTPNotFound():
            problem = ProblemError(ProblemKind.NO_SUCH_PATH, f"There is no path {request.path!r} here.")
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
    response.text = write_json(problem.make_body(request_id=request.context.id))
    response.content_type = PROBLEM_TYPE
    response.set_headers(problem.kind.headers)
