"""The sandbox as a WSGI application: routes from the contract, and every refusal made an answer here.

INTERFACE.md leaves these open, so they are the sandbox's own choice: a successful call is 200, as
was observed for POST and GET /transactions and GET /users, and 201 for POST /webhooks, as was
observed too (section 7); every answer carries `X-Request-Id`, the client's own if it is valid.
GET /openapi.json, which is not part of the interface and needs no key, describes the sandbox.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import falcon

from escrowctl.contract.operations import DEFAULT_API_PREFIX, OPERATIONS, Operation
from escrowctl.sandbox.http import (
    OPENAPI_PATH,
    SUCCESS,
    Call,
    Handler,
    Middleware,
    Resource,
    SandboxRequest,
    no_such_path,
    success_status,
)
from escrowctl.sandbox.json import JsonObject, write_json
from escrowctl.sandbox.problems import PROBLEM_TYPE, ProblemError, ProblemKind
from escrowctl.sandbox.store import primary_code

STATUS_PATH = "/sandbox/status"

App: TypeAlias = "falcon.App[SandboxRequest, falcon.Response]"


def build_app(
    handlers: Mapping[Operation, Handler], *, describe: Callable[[], JsonObject], key: str, log: logging.Logger
) -> App:
    """Build the WSGI app. An operation without a handler has no route: 404.

    `describe` answers GET /sandbox/status, for `escrowctl sandbox status`. Only `log` gets the
    exception behind a 500; the client gets the status.
    """
    app = falcon.App(request_type=SandboxRequest, response_type=falcon.Response, middleware=[Middleware(key=key)])
    by_path: dict[str, dict[str, tuple[Handler, int]]] = {}
    for operation in OPERATIONS:
        if operation in handlers:
            action = handlers[operation], success_status(operation)
            by_path.setdefault(operation.path, {})[operation.method] = action
    for path, actions in by_path.items():
        app.add_route(DEFAULT_API_PREFIX + path, Resource(actions))
    app.add_route(OPENAPI_PATH, Resource({"GET": (_openapi_document, SUCCESS)}))
    app.add_route(STATUS_PATH, Resource({"GET": (lambda _call: describe(), SUCCESS)}))
    app.add_error_handler((Exception, falcon.HTTPError), _error_answer(log))
    return app


def _openapi_document(_call: Call) -> JsonObject:
    from escrowctl.sandbox.openapi import openapi_document

    return openapi_document()


def _error_answer(log: logging.Logger) -> Callable[..., None]:
    def answer(request: SandboxRequest, response: falcon.Response, error: Exception, _params: dict[str, Any]) -> None:
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
