"""What every request passes before its handler: the key, the path, the method; and its id on the way out."""

from hmac import compare_digest
from typing import Any

import falcon

from escrowctl.sandbox.problems import ProblemError, ProblemKind
from escrowctl.sandbox.request import REQUEST_ID_HEADER, SandboxRequest
from escrowctl.sandbox.route import Route

OPENAPI_PATH = "/openapi.json"
"""The one path that needs no key: the sandbox's own document, no part of the interface (its section 5)."""


class Gate:
    """Falcon middleware; its methods are called in the order in which they stand."""

    def __init__(self, *, key: str) -> None:
        self._expected = f"bearer {key}".encode()

    def process_request(self, request: SandboxRequest, _response: falcon.Response) -> None:
        """Refuse a request without the key, before anything is said about paths or records."""
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
        self, request: SandboxRequest, _response: falcon.Response, resource: Route, _params: dict[str, Any]
    ) -> None:
        """Refuse what Falcon would let by: empty segments in a path, HEAD, OPTIONS, unheard-of methods."""
        if "//" in request.path or request.path.endswith("/"):
            raise no_such_path(request)
        if request.method not in resource.methods:
            allowed = ", ".join(resource.methods)
            raise ProblemError(
                ProblemKind.METHOD_NOT_ALLOWED, f"This path answers to {allowed}.", headers={"Allow": allowed}
            )

    def process_response(self, request: SandboxRequest, response: falcon.Response, *_: object) -> None:
        """Name the request in the answer, whichever it is."""
        response.set_header(REQUEST_ID_HEADER, request.request_id)


def no_such_path(request: falcon.Request) -> ProblemError:
    """A 404 for a path that no operation has."""
    return ProblemError(ProblemKind.NO_SUCH_PATH, f"There is no path {request.path!r} here.")
