"""The sandbox over WSGI: routes from the contract, and the one place where refusals become answers.

    request -> key (401) -> path (404) -> method (405) -> body (413) -> handler -> 200 or 201
                  a ProblemError, and anything unforeseen, -> application/problem+json

What interface.md leaves open is the sandbox's own choice: an answered call is 200, as was observed
for POST and GET /transactions and GET /users, and 201 for POST /webhooks, as was observed too
(section 7); every answer carries `X-Request-Id`, the caller's own if it is a plain word. Beside the
interface, and without a key, stands the sandbox's description of itself: GET /openapi.json.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import falcon

from escrowctl.contract.operations import DEFAULT_API_PREFIX, OPERATIONS, Operation
from escrowctl.sandbox.body import JsonObject, write_json
from escrowctl.sandbox.calls import Call
from escrowctl.sandbox.gate import OPENAPI_PATH, Gate, no_such_path
from escrowctl.sandbox.problems import PROBLEM_TYPE, ProblemError, ProblemKind
from escrowctl.sandbox.request import SandboxRequest
from escrowctl.sandbox.route import Action, Handler, Route, success_status
from escrowctl.sandbox.store import primary_code

STATUS_PATH = "/sandbox/status"

App: TypeAlias = "falcon.App[SandboxRequest, falcon.Response]"


def build_app(
    handlers: Mapping[Operation, Handler], *, describe: Callable[[], JsonObject], key: str, log: logging.Logger
) -> App:
    """Build the WSGI app. An operation without a handler has no route, and so is 404.

    `describe` answers GET /sandbox/status, which is for `escrowctl sandbox status`. `log` is told of
    what the sandbox did not foresee; the caller is told no more than that.
    """
    app = falcon.App(request_type=SandboxRequest, response_type=falcon.Response, middleware=[Gate(key=key)])
    by_path: dict[str, dict[str, Action]] = {}
    for operation in OPERATIONS:
        if operation in handlers:
            action = Action(handlers[operation], success_status(operation))
            by_path.setdefault(operation.path, {})[operation.method] = action
    for path, by_method in by_path.items():
        app.add_route(DEFAULT_API_PREFIX + path, Route(by_method))
    app.add_route(OPENAPI_PATH, Route({"GET": Action(_openapi_document)}))
    app.add_route(STATUS_PATH, Route({"GET": Action(lambda _call: describe())}))
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
            detail = "Other processes kept the store for too long; nothing was changed."
            return ProblemError(ProblemKind.STORE_BUSY, detail, headers={"Retry-After": "1"})
        case _:
            detail = "The sandbox failed unforeseen. Whether the request was carried out is not known."
            return ProblemError(ProblemKind.INTERNAL, detail)
