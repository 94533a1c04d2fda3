"""The sandbox over real HTTP: waitress on loopback, and nothing that is not addressed to it.

waitress reads and writes the sockets; what has arrived together is answered together, in this very
thread, and sent after the one commit that holds all of it.

A page in a browser can reach loopback under a name of its own (DNS rebinding, CVE-2025-24010 and
kin), so the Host header must be a name of this machine.
"""

import logging
import os
import socket
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from waitress import wasyncore
from waitress.server import create_server

from escrowctl.errors import ErrorCode, not_sent
from escrowctl.sandbox.body import write_json
from escrowctl.sandbox.calls import MAX_BODY_BYTES
from escrowctl.sandbox.problems import PROBLEM_TYPE
from escrowctl.sandbox.slots import Slots

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
DEFAULT_PORT = 4650
_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_CONNECTIONS = 200
_IDLE_SECONDS = 60
_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_NEVER_BEFORE_THE_COMMIT = 1 << 40
"""`send_bytes`: how much of an answer waitress gathers before it sends by itself, while it is still being made."""


class SandboxServer:
    """Listens from the moment it is made. Raise BUSY (exit 7) where it cannot."""

    def __init__(
        self, app: "WSGIApplication", *, port: int, together: Callable[[], AbstractContextManager[None]]
    ) -> None:
        logging.getLogger("waitress").addHandler(logging.NullHandler())
        self._together = together
        self._waiting = _Waiting()
        self._slots = Slots()
        self._map: dict[int, Any] = {}
        self._socket = _listen(port)
        self.base_url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._server = create_server(
            _only_here(app),
            map=self._map,
            sockets=[self._socket],
            _dispatcher=self._waiting,
            send_bytes=_NEVER_BEFORE_THE_COMMIT,
            connection_limit=_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            max_request_body_size=2 * MAX_BODY_BYTES,
            ident=None,
            clear_untrusted_proxy_headers=True,
            backlog=128,
        )

    def run(self, stopping: Callable[[], bool]) -> None:
        """Serve until `stopping`, which is asked a few times a second; what was begun is answered, then it ends."""
        while not stopping():
            self._turn(_LOOK_SECONDS)
        self._socket.close()
        self._server.del_channel(self._map)
        end = time.monotonic() + _GRACE_SECONDS
        while self._busy() and time.monotonic() < end:
            self._turn(_LOOK_SECONDS / 10)

    def close(self) -> None:
        """Close every connection."""
        wasyncore.close_all(self._map)
        self._socket.close()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, map=self._map, count=1, use_poll=True)
        self._slots.look(tuple(self._server.active_channels.values()), crowded=len(self._map) >= _CONNECTIONS)
        arrived = self._waiting.take()
        if not arrived:
            return
        try:
            with self._together():
                for channel in arrived:
                    channel.service()
        except sqlite3.Error:
            # Nothing of it is kept, so nobody may be told otherwise: no answer is the honest one.
            for channel in arrived:
                channel.handle_close()

    def _busy(self) -> bool:
        channels = self._server.active_channels.values()
        return any(channel.requests or channel.total_outbufs_len for channel in channels)


class _Waiting:
    """In the place of waitress's threads: keeps what has arrived until the server takes it."""

    def __init__(self) -> None:
        self._channels: deque[Any] = deque()

    def take(self) -> list[Any]:
        """Return what waits, in the order of arrival."""
        taken = list(self._channels)
        self._channels.clear()
        return taken

    def add_task(self, channel: Any) -> None:
        """Take a connection on which a whole request has arrived."""
        self._channels.append(channel)

    def set_thread_count(self, _count: int) -> None:
        """There are no threads."""

    def shutdown(self, *_: object) -> None:
        """There is nothing to stop."""


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        raise not_sent(
            ErrorCode.BUSY,
            f"{HOST}:{port} cannot be listened on: {os.strerror(error.errno or 0)}.",
            hint="another port: --port N, or --port 0 for any that is free",
        ) from error


def _only_here(app: "WSGIApplication") -> "WSGIApplication":
    def guarded(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        host = str(environ.get("HTTP_HOST", ""))
        if host.rpartition(":")[0] in _NAMES or host in _NAMES:
            return app(environ, start_response)
        body = write_json(
            {
                "type": "about:blank",
                "title": "Misdirected Request",
                "status": 421,
                "detail": f"This server is {HOST}, and nothing else.",
            }
        ).encode()
        headers = [("Content-Type", PROBLEM_TYPE), ("Content-Length", str(len(body)))]
        start_response("421 Misdirected Request", headers)
        return [body]

    return guarded
