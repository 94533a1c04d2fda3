"""A proxy in front of a PostgreSQL server. It counts statements, and cuts a connection at a chosen one.

A statement begins with the message Query or Parse (postgresql.org/docs/current/protocol-message-formats.html). The
connections have no TLS.
"""

import contextlib
import math
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

BEFORE, AFTER = "before", "after"
_QUERY, _PARSE, _SYNC, _READY = b"Q", b"P", b"S", b"Z"


@dataclass
class _Connection:
    """How many answers the client has asked for, and the number of the first one that it does not get."""

    asked: int = 0
    first_lost: float = math.inf


class CuttingProxy:
    """`cuts`: number of a statement -> whether its connection ends BEFORE or AFTER the server carries it out.

    The client gets no answer in either case. `statements` are those that clients began, and `cut` those of `cuts`.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.begin({})
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, cuts: dict[int, str]) -> None:
        """Count from 1 again."""
        self.cuts, self.statements, self.cut = cuts, list[bytes](), list[bytes]()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ends = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self._server_port))
                state = _Connection()
                for run in (self._pass_statements, self._pass_answers):
                    threading.Thread(target=run, args=(*ends, state), daemon=True).start()

    def _pass_statements(self, client: socket.socket, server: socket.socket, state: _Connection) -> None:
        with _both(client, server), client.makefile("rb") as reader:
            server.sendall(_read(reader, typed=False))
            while True:
                message = _read(reader)
                if message[:1] in (_QUERY, _PARSE):
                    statement = message[5:].lstrip(b"\0").partition(b"\0")[0].strip()
                    self.statements.append(statement)
                    if (moment := self.cuts.get(len(self.statements))) is not None:
                        self.cut.append(statement)
                        state.first_lost = state.asked + 1
                    if moment == BEFORE:
                        return
                state.asked += message[:1] in (_QUERY, _SYNC)
                server.sendall(message)

    def _pass_answers(self, client: socket.socket, server: socket.socket, state: _Connection) -> None:
        with _both(client, server), server.makefile("rb") as reader:
            answered = -1  # the first one is to the start of the connection
            while answered < state.first_lost:
                message = _read(reader)
                if answered + 1 < state.first_lost:
                    client.sendall(message)
                answered += message[:1] == _READY


@contextlib.contextmanager
def _both(*ends: socket.socket) -> Iterator[None]:
    """Send small messages at once during the block; close both ends after it."""
    for end in ends:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError, EOFError):
        yield
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _read(reader: BinaryIO, *, typed: bool = True) -> bytes:
    """Read one message. Raises EOFError if there is none."""
    if len(head := reader.read(4 + typed)) < 4 + typed:
        raise EOFError
    return head + reader.read(struct.unpack("!I", head[-4:])[0] - 4)
