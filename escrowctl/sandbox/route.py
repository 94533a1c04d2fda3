"""One path of the interface as Falcon wants it: a responder per method, each a handler that knows no web."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import falcon

from escrowctl.sandbox.body import JsonObject, write_json
from escrowctl.sandbox.calls import JSON_TYPE, MAX_BODY_BYTES, Call
from escrowctl.sandbox.problems import ProblemError, ProblemKind
from escrowctl.sandbox.request import SandboxRequest

Handler: TypeAlias = Callable[[Call], JsonObject]
Responder: TypeAlias = Callable[..., None]


class Route:
    """One path: a responder per method under the names that Falcon looks for (`on_get`, `on_put`)."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.methods = tuple(sorted(handlers))
        for method, handler in handlers.items():
            setattr(self, f"on_{method.lower()}", _responder(handler))


def _responder(handler: Handler) -> Responder:
    def respond(request: SandboxRequest, response: falcon.Response, **path: str) -> None:
        call = Call(
            resource_id=path.get("id", ""),
            query=request.query_string,
            content_type=request.content_type or "",
            body=_read_body(request),
        )
        response.text = write_json(handler(call))
        response.content_type = JSON_TYPE

    return respond


def _read_body(request: SandboxRequest) -> bytes:
    length = request.content_length or 0
    if length > MAX_BODY_BYTES:
        raise ProblemError(ProblemKind.TOO_LARGE, f"A body may have at most {MAX_BODY_BYTES} bytes.")
    return request.bounded_stream.read(length)
