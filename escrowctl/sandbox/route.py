"""One path of the interface as Falcon wants it: a responder per method, each a handler that knows no web."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import falcon

from escrowctl.contract.operations import CREATE_WEBHOOK, Operation
from escrowctl.sandbox.body import JsonObject, write_json
from escrowctl.sandbox.calls import JSON_TYPE, MAX_BODY_BYTES, Call
from escrowctl.sandbox.problems import ProblemError, ProblemKind
from escrowctl.sandbox.request import SandboxRequest

Handler: TypeAlias = Callable[[Call], JsonObject]
Responder: TypeAlias = Callable[..., None]

SUCCESS = 200
CREATED = 201


def success_status(operation: Operation) -> int:
    """The status of an answered call: 201 for POST /webhooks, else 200 (observed, interface.md section 7)."""
    return CREATED if operation is CREATE_WEBHOOK else SUCCESS


@dataclass(frozen=True, slots=True)
class Action:
    """What a method of a path does, and the status that says it was done."""

    handler: Handler
    status: int = SUCCESS


class Route:
    """One path: a responder per method under the names that Falcon looks for (`on_get`, `on_put`)."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self.methods = tuple(sorted(actions))
        for method, action in actions.items():
            setattr(self, f"on_{method.lower()}", _responder(action))


def _responder(action: Action) -> Responder:
    def respond(request: SandboxRequest, response: falcon.Response, **path: str) -> None:
        call = Call(
            resource_id=path.get("id", ""),
            query=request.query_string,
            content_type=request.content_type or "",
            body=_read_body(request),
        )
        response.text = write_json(action.handler(call))
        response.status = action.status
        response.content_type = JSON_TYPE

    return respond


def _read_body(request: SandboxRequest) -> bytes:
    length = request.content_length or 0
    if length > MAX_BODY_BYTES:
        raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
    return request.bounded_stream.read(length)
