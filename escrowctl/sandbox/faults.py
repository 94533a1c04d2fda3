"""Faults that an operator sets for a rehearsal: broken connections, broken replies and late replies.

A WSGI application cannot close a connection. So a fault raises ConnectionAbortedError to end the connection before
or during the reply, and ConnectionResetError to reset it. A late reply is a `LateAnswer`. `apply_faults` makes a
server do all three; in-process, the client's transport imitates a socket. A request with a reset or a 429 has no
effect. With every other fault, the effect of the request is stored before the fault happens.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from escrowctl.sandbox.bodies import ProblemKind
from escrowctl.sandbox.settings import FAULT_PREFIX, Fault, FaultKind, Rehearsal
from escrowctl.sandbox.variants import Answer, call_app, make_problem_answer, vary_answer, vary_request

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from escrowctl.loopback import LoopbackServer

_DELAY_STEP_SECONDS = 0.1


class LateAnswer:
    """The body of an answer that is delayed by `seconds`.

    Iteration yields empty chunks during the delay (PEP 3333: not ready yet), then `chunks`. A server that has
    several clients must not wait here: it takes `chunks`, and delays the answer itself.
    """

    def __init__(self, chunks: Iterable[bytes], seconds: float) -> None:
        self.chunks = chunks
        self.seconds = seconds

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(round(self.seconds / _DELAY_STEP_SECONDS)):
            time.sleep(_DELAY_STEP_SECONDS)
            yield b""
        yield from self.chunks


class RehearsalApp:
    """A WSGI application that calls `app`, with the faults and variants that are set."""

    def __init__(self, app: "WSGIApplication", rehearsal: Rehearsal) -> None:
        self._app = app
        self._rehearsal = rehearsal

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request. Raises ConnectionAbortedError or ConnectionResetError if a fault ends the connection."""
        try:
            settings = self._rehearsal.read()
            if not settings:
                return self._app(environ, start_response)
            routed, operation = vary_request(environ, settings)
            name = f"{FAULT_PREFIX}{operation.word}" if operation else ""
            fault = self._rehearsal.use_fault(name) if name in settings else None
        except sqlite3.Error:
            # The application uses the same store: it fails too, and reports the error.
            return self._app(environ, start_response)
        answer = self._make_answer(routed, fault)
        if operation is not None:
            answer = vary_answer(answer, operation, settings)
        if fault and fault.kind is FaultKind.BAD_JSON:
            answer = answer.with_body(b"{" + answer.body)
        start_response(answer.status, answer.headers)
        if fault and fault.kind is FaultKind.TRUNCATED:
            return _abort_after_half(answer.body)
        chunks = [answer.body]
        return LateAnswer(chunks, fault.seconds) if fault and fault.kind is FaultKind.LATENCY else chunks

    def _make_answer(self, environ: "WSGIEnvironment", fault: Fault | None) -> Answer:
        """Return the answer of the application or the fault. Raises ConnectionError for a broken connection."""
        if fault is None:
            return call_app(self._app, environ)
        if fault.kind is FaultKind.RESET:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        if fault.kind is FaultKind.THROTTLED:
            return make_problem_answer(ProblemKind.THROTTLED, {"Retry-After": f"{fault.seconds:.0f}"})
        answer = call_app(self._app, environ)
        if fault.kind is FaultKind.DROP_REPLY:
            raise ConnectionAbortedError
        return make_problem_answer(ProblemKind.INTERNAL, {}) if fault.kind is FaultKind.FAILED else answer


def apply_faults(app: "WSGIApplication", server: "LoopbackServer") -> "WSGIApplication":
    """Return an application that calls `app`, and makes `server` reset connections and delay answers for faults."""

    def respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        try:
            answer = app(environ, start_response)
        except ConnectionResetError:
            server.reset_connection()
            raise
        if isinstance(answer, LateAnswer):
            server.delay_answer(answer.seconds)
            return answer.chunks
        return answer

    return respond


def _abort_after_half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise ConnectionAbortedError
