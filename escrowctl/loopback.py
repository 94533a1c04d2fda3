"""An HTTP server for this machine: waitress on loopback, one thread, and limits for its connections.

waitress reads and writes the sockets. The same thread then handles the arrived requests one after the
other. One commit stores the changes of all these requests; then their answers are sent.

A web page can reach loopback under the page's own host name (DNS rebinding, CVE-2025-24010 and
similar), so the Host header must be a name of this machine.
"""

import logging
import math
import os
import socket
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from waitress import wasyncore
from waitress.server import create_server

from escrowctl.errors import ErrorCode, not_sent

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ReportRefusal = Callable[[str, str], object]
"""Reports a refused request. The arguments are the status of the answer and the reason."""

HOST = "127.0.0.1"

_HOST_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MISDIRECTED = "421 Misdirected Request"
_MAX_QUOTED_CHARS = 80
_POLL_SECONDS = 0.2
_SHUTDOWN_SECONDS = 5.0
_MAX_CONNECTIONS = 200
_IDLE_SECONDS = 60
_MAX_REQUEST_BYTES = 2 * 1024 * 1024
"""Larger than the limit of any application here: an application refuses a large body with its own message."""
_MAX_UNSENT_BYTES = 1 << 40
"""More than any answer has: waitress would send an unfinished answer early once it has so many bytes."""


class LoopbackServer:
    """An HTTP server on `HOST`. It listens from its creation on, and answers while `run` runs.

    The Host header must be a name of this machine, or one of `hosts` (in lower case). Raises EscrowctlError
    `ErrorCode.BUSY` if it cannot listen.
    """

    def __init__(self, port: int, *, hosts: frozenset[str] = frozenset()) -> None:
        logging.getLogger("waitress").addHandler(logging.NullHandler())
        self._app: WSGIApplication
        self._report: ReportRefusal
        self._hosts = _HOST_NAMES | hosts
        self._arrived_channels: list[Any] = []
        # Map a connection to the time when its delayed answer is due.
        self._delayed_until: dict[Any, float] = {}
        self._current_channel: Any = None
        self._map: dict[int, Any] = {}
        try:
            self._socket = socket.create_server((HOST, port), backlog=128)
        except OSError as error:
            message = f"escrowctl cannot listen on {HOST}:{port}: {os.strerror(error.errno or 0)}."
            hint = "choose another port: --port N, or --port 0 for a free one"
            raise not_sent(ErrorCode.BUSY, message, hint=hint) from error
        self.base_url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._server = create_server(
            self._answer,
            map=self._map,
            sockets=[self._socket],
            # In place of waitress's threads.
            _dispatcher=SimpleNamespace(add_task=self._arrived_channels.append),
            send_bytes=_MAX_UNSENT_BYTES,
            connection_limit=_MAX_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            max_request_body_size=_MAX_REQUEST_BYTES,
            ident=None,
            clear_untrusted_proxy_headers=True,
            # An application that raises OSError closes its connection, without a reply if none has begun.
            log_socket_errors=False,
            backlog=128,
        )

    def run(
        self,
        app: "WSGIApplication",
        should_stop: Callable[[], bool],
        *,
        commit_group: Callable[[], AbstractContextManager[None]],
        report: ReportRefusal = lambda _status, _reason: None,
    ) -> None:
        """Serve until `should_stop`, called a few times a second, returns True. Then finish the open requests.

        Requests that arrived together share one `commit_group()`. On sqlite3.Error none of them is answered.
        In the group, `report` is called for each request that is refused before the application gets the request.
        """
        self._app, self._report = app, report
        while not should_stop():
            self._serve_once(_POLL_SECONDS, commit_group)
        self._socket.close()
        self._server.del_channel(self._map)
        end = time.monotonic() + _SHUTDOWN_SECONDS
        channels = self._server.active_channels
        while any(one.requests or one.total_outbufs_len for one in channels.values()) and time.monotonic() < end:
            self._serve_once(_POLL_SECONDS / 10, commit_group)

    def delay_answer(self, seconds: float) -> None:
        """Send the current answer only after this many seconds. Other answers do not wait for it."""
        self._delayed_until[self._current_channel] = time.monotonic() + seconds
        self._current_channel.writable = lambda: False

    def reset_connection(self) -> None:
        """Make the current connection end with a TCP reset, once the application raises OSError."""
        # Closing such a socket sends a reset (socket(7), SO_LINGER).
        self._current_channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        """Close every connection, and stop listening."""
        wasyncore.close_all(self._map)
        self._socket.close()

    def _serve_once(self, max_wait: float, commit_group: Callable[[], AbstractContextManager[None]]) -> None:
        due = min(self._delayed_until.values(), default=math.inf) - time.monotonic()
        wasyncore.loop(timeout=max(0.0, min(max_wait, due)), map=self._map, count=1, use_poll=True)
        for channel in [one for one, until in self._delayed_until.items() if until <= time.monotonic()]:
            del self._delayed_until[channel], channel.writable
        arrived = self._arrived_channels.copy()
        self._arrived_channels.clear()
        if not arrived:
            return
        try:
            with commit_group():
                for self._current_channel in arrived:
                    if flaw := self._current_channel.requests[0].error:
                        self._report(f"{flaw.code} {flaw.reason}", f"it is not a valid request ({flaw.body})")
                    self._current_channel.service()
        except sqlite3.Error:
            # Nothing was stored, so the prepared answers are false: close the connections without an answer.
            for channel in arrived:
                channel.handle_close()

    def _answer(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        host = str(environ.get("HTTP_HOST", "")).lower()
        if host.rpartition(":")[0] in self._hosts or host in self._hosts:
            return self._app(environ, start_response)
        message = f'its Host header is "{host[:_MAX_QUOTED_CHARS]}", not one of {", ".join(sorted(self._hosts))}'
        self._report(_MISDIRECTED, message)
        start_response(_MISDIRECTED, [("Content-Length", "0")])
        return []
