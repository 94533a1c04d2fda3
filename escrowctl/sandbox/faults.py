"""Faults of a rehearsal, around the sandbox's application: broken connections and broken replies.

A WSGI application cannot close a connection. It raises ConnectionAbortedError to close one without a reply
or in the middle of one, and ConnectionResetError to reset it. A `LateAnswer` is ready later. `carry_out` does
this with a server's sockets; the client's in-process transport behaves as with a socket. The effect of a
request is stored first, except for a reset and a 429.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from escrowctl.sandbox.bodies import ProblemKind
from escrowctl.sandbox.settings import FAULT, OPERATION_WORDS, Fault, FaultKind, Rehearsal
from escrowctl.sandbox.variants import Answer, ask, call_route, problem_answer, shape_answer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from escrowctl.loopback import LoopbackServer

_STEP_SECONDS = 0.1


class LateAnswer:
    """The chunks of an answer that is ready after `seconds`.

    Iterating waits, with an empty chunk now and then (PEP 3333: not ready yet). A server with other
    clients takes `chunks` and delays them itself.
    """

    def __init__(self, chunks: Iterable[bytes], seconds: float) -> None:
        self.chunks = chunks
        self.seconds = seconds

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(round(self.seconds / _STEP_SECONDS)):
            time.sleep(_STEP_SECONDS)
            yield b""
        yield from self.chunks


class Rehearsed:
    """The application with the settings of a rehearsal. Without settings it behaves as the bare application."""

    def __init__(self, app: "WSGIApplication", rehearsal: Rehearsal) -> None:
        self._app = app
        self._rehearsal = rehearsal

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request. Raises ConnectionAbortedError or ConnectionResetError if a fault ends the connection."""
        try:
            settings = self._rehearsal.current()
            if not settings:
                return self._app(environ, start_response)
            called, operation = call_route(environ, settings)
            name = f"{FAULT}{OPERATION_WORDS[operation]}" if operation else ""
            fault = self._rehearsal.use_fault(name) if name in settings else None
        except sqlite3.Error:
            # The application fails on the same store, and reports it.
            return self._app(environ, start_response)
        answer = self._ask(called, fault)
        if operation is not None:
            answer = shape_answer(answer, operation, settings)
        chunks: Iterable[bytes] = [answer.body]
        if fault is not None:
            match fault.kind:
                case FaultKind.BAD_JSON:
                    answer = answer.with_body(b"{" + answer.body)
                    chunks = [answer.body]
                case FaultKind.TRUNCATED:
                    chunks = _half(answer.body)
                case FaultKind.LATENCY:
                    chunks = LateAnswer(chunks, fault.seconds)
                case _:
                    pass
        start_response(answer.status, answer.headers)
        return chunks

    def _ask(self, environ: "WSGIEnvironment", fault: Fault | None) -> Answer:
        """Return the answer of the application, or the fault's own."""
        if fault is None:
            return ask(self._app, environ)
        if fault.kind is FaultKind.RESET:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        if fault.kind is FaultKind.THROTTLED:
            return problem_answer(ProblemKind.THROTTLED, {"Retry-After": f"{fault.seconds:.0f}"})
        answer = ask(self._app, environ)
        if fault.kind is FaultKind.DROP_REPLY:
            raise ConnectionAbortedError
        return problem_answer(ProblemKind.INTERNAL, {}) if fault.kind is FaultKind.FAILED else answer


def carry_out(app: "WSGIApplication", server: "LoopbackServer") -> "WSGIApplication":
    """Return the application for a server: faults act on the sockets of the server."""

    def carried(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        try:
            answer = app(environ, start_response)
        except ConnectionResetError:
            server.reset()
            raise
        if isinstance(answer, LateAnswer):
            server.hold(answer.seconds)
            return answer.chunks
        return answer

    return carried


def _half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise ConnectionAbortedError
