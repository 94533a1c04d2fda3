"""The web library's request, made fit for odd paths and given an id."""

import re
import secrets
from functools import cached_property
from typing import Any

import falcon

REQUEST_ID_HEADER = "X-Request-Id"
PLAIN_WORD = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class SandboxRequest(falcon.Request):
    """A request whose path is always readable, and which has an id."""

    def __init__(self, env: dict[str, Any], options: falcon.RequestOptions | None = None) -> None:
        super().__init__({**env, "PATH_INFO": _tunnelled(env["PATH_INFO"])}, options)

    @cached_property
    def request_id(self) -> str:
        """The caller's `X-Request-Id` if it is a plain word, else a new one."""
        offered = self.get_header(REQUEST_ID_HEADER) or ""
        return offered if PLAIN_WORD.fullmatch(offered) else f"req_{secrets.token_hex(8)}"


def _tunnelled(path: str) -> str:
    # PEP 3333 wants the path's bytes as Latin-1, and Falcon relies on it; httpx's WSGITransport
    # gives decoded text, which for most of Unicode would end in an exception before any handler.
    try:
        path.encode("latin-1")
    except UnicodeEncodeError:
        return path.encode("utf-8", "replace").decode("latin-1")
    return path
