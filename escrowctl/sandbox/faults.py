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
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from escrowctl.sandbox.bodies import ProblemKind
from escrowctl.sandbox.rehearsal import Rehearsal
from escrowctl.sandbox.settings import OPERATION_WORDS, Fault, FaultKind, Settings
from escrowctl.sandbox.variants import ask, call_route, problem_answer, shape_answer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from escrowctl.loopback import LoopbackServer

_STEP_SECONDS = 0.1


class LateAnswer:
    """The chunks of an answer that is ready after `seconds`.

    Iterating waits, with an empty chunk now and then (PEP 3333: not ready yet). A server with other
    clients takes `chunks` and delays them itself.
    """

    def __init__(self, chunks: Iterable[bytes], seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self.chunks = chunks
        self.seconds = seconds
        self._sleep = sleep

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(round(self.seconds / _STEP_SECONDS)):
            self._sleep(_STEP_SECONDS)
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
            if not any(settings):
                return self._app(environ, start_response)
            called, operation = call_route(environ, settings)
            word = next((word for word, one in OPERATION_WORDS.items() if one is operation), "")
            fault = self._rehearsal.use_fault(word) if word in settings.faults else None
        except sqlite3.Error:
            # The application fails on the same store, and reports it.
            return self._app(environ, start_response)
        return self._answer(called, start_response, settings, fault)

    def _answer(
        self, environ: "WSGIEnvironment", start_response: "StartResponse", settings: Settings, fault: Fault | None
    ) -> Iterable[bytes]:
        kind = fault.kind if fault is not None else None
        if kind is FaultKind.RESET:
            raise _lost(ConnectionResetError, errno.ECONNRESET)
        if fault is not None and kind is FaultKind.THROTTLED:
            answer = problem_answer(ProblemKind.THROTTLED, {"Retry-After": f"{fault.seconds:.0f}"})
        else:
            answer = ask(self._app, environ)
        if kind is FaultKind.DROP_REPLY:
            raise _lost(ConnectionAbortedError, errno.ECONNABORTED)
        if kind is FaultKind.FAILED:
            answer = problem_answer(ProblemKind.INTERNAL, {})
        answer = shape_answer(answer, environ, settings)
        chunks: Iterable[bytes] = [answer.body]
        match kind:
            case FaultKind.BAD_JSON:
                answer = answer.with_body(b"{" + answer.body)
                chunks = [answer.body]
            case FaultKind.TRUNCATED:
                chunks = _half(answer.body)
            case FaultKind.LATENCY if fault is not None:
                chunks = LateAnswer(chunks, fault.seconds)
        start_response(answer.status, answer.headers)
        return chunks


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
    raise _lost(ConnectionAbortedError, errno.ECONNABORTED)


def _lost(error: type[ConnectionError], number: int) -> ConnectionError:
    return error(number, os.strerror(number))
