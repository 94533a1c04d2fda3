"""Faults that an operator sets for a rehearsal: broken connections, broken replies and late replies.

A WSGI application cannot close a connection. So a fault raises ConnectionAbortedError to end the connection before
or during the reply, and ConnectionResetError to reset it. In the process of a command, the client's transport
imitates a socket. A request with a reset or a 429 has no effect. With every other fault, the effect of the request is
stored before the fault happens.
"""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

from escrowctl.sandbox.bodies import ProblemError, ProblemKind
from escrowctl.sandbox.http import Answer, Router, make_problem_answer
from escrowctl.sandbox.settings import FAULT_PREFIX, Fault, FaultKind, Rehearsal, Settings
from escrowctl.sandbox.variants import vary_answer, vary_request

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from escrowctl.loopback import LoopbackServer

_DELAY_STEP_SECONDS = 0.1


class RehearsalApp:
    """The sandbox's WSGI application: the router, with the faults and variants that are set.

    `server` is the server of the application; None in the process of a command.
    """

    server: "LoopbackServer | None" = None

    def __init__(self, router: Router, rehearsal: Rehearsal) -> None:
        self._router = router
        self._rehearsal = rehearsal

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request. Raises ConnectionAbortedError or ConnectionResetError if a fault ends the connection."""
        settings: Settings = {}
        fault: Fault | None = None
        # After an error of the store, the handler fails too, and its answer reports the error.
        with contextlib.suppress(sqlite3.Error):
            settings = self._rehearsal.read()
        routed, operation = vary_request(environ, settings)
        name = f"{FAULT_PREFIX}{operation.word}" if operation else ""
        with contextlib.suppress(sqlite3.Error):
            fault = self._rehearsal.use_fault(name) if name in settings else None
        answer = self._make_answer(routed, fault)
        if operation is not None:
            answer = vary_answer(answer, operation, settings)
        body = b"{" + answer.body if fault and fault.kind is FaultKind.BAD_JSON else answer.body
        headers = [*answer.headers.items()]
        if answer.content is not None:
            headers += [("Content-Type", answer.content_type), ("Content-Length", str(len(body)))]
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", headers)
        if fault and fault.kind is FaultKind.TRUNCATED:
            return _abort_after_half(body)
        chunks = [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
        if fault and fault.kind is FaultKind.LATENCY:
            if self.server is None:
                return _yield_late(chunks, fault.seconds)
            # The server has several clients: it must not wait here.
            self.server.delay_answer(fault.seconds)
        return chunks

    def _make_answer(self, environ: "WSGIEnvironment", fault: Fault | None) -> Answer:
        """Return the answer of the router or the fault. Raises ConnectionError for a broken connection."""
        detail = "This reply is a fault that was set for a rehearsal."
        if fault and fault.kind is FaultKind.RESET:
            if self.server is not None:
                self.server.reset_connection()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        if fault and fault.kind is FaultKind.THROTTLED:
            problem = ProblemError(ProblemKind.THROTTLED, detail, headers={"Retry-After": f"{fault.seconds:.0f}"})
            return make_problem_answer(problem, request_id="rehearsal")
        answer = self._router.answer(environ)
        if fault and fault.kind is FaultKind.DROP_REPLY:
            raise ConnectionAbortedError
        if fault and fault.kind is FaultKind.FAILED:
            return make_problem_answer(ProblemError(ProblemKind.INTERNAL, detail), request_id="rehearsal")
        return answer


def _yield_late(chunks: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    """Yield empty chunks (PEP 3333: not ready yet) for this many seconds, then `chunks`."""
    for _ in range(round(seconds / _DELAY_STEP_SECONDS)):
        time.sleep(_DELAY_STEP_SECONDS)
        yield b""
    yield from chunks


def _abort_after_half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise ConnectionAbortedError
