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
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hmac import compare_digest
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import falcon

from escrowctl.contract.operations import CREATE_WEBHOOK, DEFAULT_API_PREFIX, OPERATIONS, Operation
from escrowctl.sandbox.bodies import (
    PROBLEM_TYPE,
    BodyFlaw,
    JsonError,
    JsonObject,
    ProblemError,
    ProblemKind,
    flawed,
    parameter_flaw,
    read_json,
    write_json,
)
from escrowctl.sqlite import primary_code

SUCCESS = 200
CREATED = 201

JSON_TYPE = "application/json"
MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")

OPENAPI_PATH = "/openapi.json"
"""The path of the sandbox's own document. It alone needs no key, and is not part of the interface (section 5)."""


RECOGNISED_KEY = "escrowctl.idempotency_key"
"""The name in the WSGI environment of the Idempotency-Key that the sandbox recognises."""

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
LIMIT = re.compile(r"[1-9][0-9]{0,2}")

App: TypeAlias = "falcon.App[SandboxRequest, falcon.Response]"


class SandboxRequest(falcon.Request):
    """A request with an id and with a path that Falcon can always read."""

    def __init__(self, env: dict[str, Any], options: falcon.RequestOptions | None = None) -> None:
        super().__init__({**env, "PATH_INFO": _latin_1(env["PATH_INFO"])}, options)

    @cached_property
    def request_id(self) -> str:
        """The client's `X-Request-Id` if it matches `REQUEST_ID`, else a new one."""
        offered = self.get_header(REQUEST_ID_HEADER) or ""
        return offered if REQUEST_ID.fullmatch(offered) else f"req_{secrets.token_hex(8)}"


class Call(NamedTuple):
    """An authenticated request: the id in its path ("" if it has none), and the rest unchanged."""

    resource_id: str
    query: str
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
        try:
            value = read_json(self.body)
        except JsonError as error:
            raise flawed(BodyFlaw("#", f"The body is not usable JSON: {error}.")) from error
        if not isinstance(value, Mapping):
            raise flawed(BodyFlaw("#", "The body must be a JSON object."))
        return value

    def ignore_body(self) -> None:
        """Accept no body or a JSON object, which has no effect; 415 or 400 for anything else."""
        if self.body:
            self.json_object()

    def parameters(self, *allowed: str) -> Mapping[str, str]:
        """The query parameters; 400 for a name that is not allowed here, or given twice.

        An ignored filter would show a client the wrong records.
        """
        pairs = parse_qsl(self.query, keep_blank_values=True)
        found = dict(pairs)
        unknown = [name for name in found if name not in allowed]
        flaws = [parameter_flaw(name, f"{name!r} is not a parameter of this call.") for name in unknown]
        if len(found) != len(pairs):
            flaws.append(parameter_flaw("query", "A parameter is given twice."))
        if flaws:
            raise flawed(*flaws)
        return found


def read_page(connection: sqlite3.Connection, call: Call, table: str, noun: str) -> tuple[Sequence[sqlite3.Row], bool]:
    """Return the requested rows of a list, newest first, and whether there are more.

    Raises ProblemError: 400 for an unknown or bad parameter, and for an `after` that names no record.
    """
    parameters = call.parameters("limit", "after")
    limit, after = parameters.get("limit", str(DEFAULT_LIMIT)), parameters.get("after")
    if not LIMIT.fullmatch(limit) or int(limit) > MAX_LIMIT:
        raise flawed(parameter_flaw("limit", f"limit must be a whole number from 1 to {MAX_LIMIT}."))
    find = f"SELECT position FROM {table} WHERE id = ?"  # noqa: S608 - the table is the caller's own
    start = connection.execute(find, (after,)).fetchone()
    if after is not None and start is None:
        raise flawed(parameter_flaw("after", f"after names no {noun}: {after!r}."))
    select = f"SELECT * FROM {table} WHERE ?1 IS NULL OR position < ?1 ORDER BY position DESC LIMIT ?2"  # noqa: S608
    rows = connection.execute(select, (start and start["position"], int(limit) + 1)).fetchall()
    return rows[: int(limit)], len(rows) > int(limit)


Handler: TypeAlias = Callable[[Call], JsonObject]


class Resource:
    """One path: a responder per method under the names that Falcon looks for (`on_get`, `on_put`).

    `actions` maps a method to its handler and to the status of a successful answer.
    """

    def __init__(self, actions: Mapping[str, tuple[Handler, int]]) -> None:
        self.methods = tuple(sorted(actions))
        for method, (handler, status) in actions.items():
            setattr(self, f"on_{method.lower()}", _responder(handler, status))


class Middleware:
    """Falcon middleware: checks each request before its handler runs, and puts its id into the answer."""

    def __init__(self, *, key: str) -> None:
        self._expected = f"bearer {key}".encode()

    def process_request(self, request: SandboxRequest, _response: falcon.Response) -> None:
        """Authenticate: without the key a client learns nothing about paths or records."""
        if request.path == OPENAPI_PATH:
            return
        scheme, _, key = (request.get_header("Authorization") or "").partition(" ")
        offered = f"{scheme.lower()} {key}".encode("utf-8", "replace")
        if not compare_digest(offered, self._expected):
            raise ProblemError(
                ProblemKind.UNAUTHENTICATED,
                "This call needs the header Authorization: Bearer <API_KEY>, with the key of this sandbox.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def process_resource(
        self, request: SandboxRequest, _response: falcon.Response, resource: Resource, _params: dict[str, Any]
    ) -> None:
        """Refuse requests that Falcon would accept: empty segments in a path, HEAD, OPTIONS, unknown methods."""
        if "//" in request.path or request.path.endswith("/"):
            raise no_such_path(request)
        if request.method not in resource.methods:
            allowed = ", ".join(resource.methods)
            raise ProblemError(
                ProblemKind.METHOD_NOT_ALLOWED, f"This path supports {allowed}.", headers={"Allow": allowed}
            )

    def process_response(self, request: SandboxRequest, response: falcon.Response, *_: object) -> None:
        """Send the request's id with every answer."""
        response.set_header(REQUEST_ID_HEADER, request.request_id)


def build_app(
    handlers: Mapping[Operation, Handler], more: Mapping[str, Mapping[str, Handler]], *, key: str, log: logging.Logger
) -> App:
    """Build the WSGI app. An operation without a handler has no route: 404.

    `more` has the handlers of other paths, by path and method. Only `log` gets the exception behind a 500; the
    client gets the status. A ConnectionError of a handler is not answered: the app raises it.
    """
    app = falcon.App(request_type=SandboxRequest, response_type=falcon.Response, middleware=[Middleware(key=key)])
    by_path: dict[str, dict[str, tuple[Handler, int]]] = {}
    for operation in OPERATIONS:
        if operation in handlers:
            action = handlers[operation], success_status(operation)
            by_path.setdefault(operation.path, {})[operation.method] = action
    for path, actions in by_path.items():
        app.add_route(DEFAULT_API_PREFIX + path, Resource(actions))
    for path, by_method in more.items():
        app.add_route(path, Resource({method: (handler, SUCCESS) for method, handler in by_method.items()}))
    app.add_error_handler((Exception, falcon.HTTPError), _error_answer(log))
    return app


def success_status(operation: Operation) -> int:
    """The status of a successful call: 201 for POST /webhooks, else 200 (observed, INTERFACE.md section 7)."""
    return CREATED if operation is CREATE_WEBHOOK else SUCCESS


def no_such_path(request: falcon.Request) -> ProblemError:
    """A 404 for a path that no operation has."""
    return ProblemError(ProblemKind.NO_SUCH_PATH, f"There is no path {request.path!r} here.")


def _error_answer(log: logging.Logger) -> Callable[..., None]:
    def answer(request: SandboxRequest, response: falcon.Response, error: Exception, _params: dict[str, Any]) -> None:
        if isinstance(error, ConnectionError):
            raise error
        problem = _as_problem(request, error)
        if problem.kind is ProblemKind.INTERNAL:
            log.error("request %s failed", request.request_id, exc_info=error)
        response.status = problem.kind.status
        response.text = write_json(problem.document(request_id=request.request_id))
        response.content_type = PROBLEM_TYPE
        response.set_headers(dict(problem.headers))

    return answer


def _as_problem(request: SandboxRequest, error: Exception) -> ProblemError:
    match error:
        case ProblemError():
            return error
        case falcon.HTTPNotFound():
            return no_such_path(request)
        case falcon.HTTPBadRequest():
            return ProblemError(ProblemKind.BAD_REQUEST, "The method or a header cannot be understood.")
        case sqlite3.OperationalError() if primary_code(error) == sqlite3.SQLITE_BUSY:
            detail = "Other processes locked the store for too long; nothing was changed."
            return ProblemError(ProblemKind.STORE_BUSY, detail, headers={"Retry-After": "1"})
        case _:
            detail = "Internal error. The request may or may not have been carried out."
            return ProblemError(ProblemKind.INTERNAL, detail)


def _responder(handler: Handler, status: int) -> Callable[..., None]:
    def respond(request: SandboxRequest, response: falcon.Response, **path: str) -> None:
        content_type, key = request.content_type or "", request.env.get(RECOGNISED_KEY, "")
        call = Call(path.get("id", ""), request.query_string, content_type, _read_body(request), key)
        response.text = write_json(handler(call))
        response.status = status
        response.content_type = JSON_TYPE

    return respond


def _read_body(request: SandboxRequest) -> bytes:
    length = request.content_length or 0
    if length > MAX_BODY_BYTES:
        raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
    return request.bounded_stream.read(length)


def _latin_1(path: str) -> str:
    # PEP 3333 wants the path's bytes as Latin-1, and Falcon relies on it; httpx's WSGITransport
    # gives decoded text, which for most of Unicode would raise an exception before any handler.
    try:
        path.encode("latin-1")
    except UnicodeEncodeError:
        return path.encode("utf-8", "replace").decode("latin-1")
    return path
