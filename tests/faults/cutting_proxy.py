"""A proxy in front of a PostgreSQL server. It counts statements, and cuts a connection at a chosen one.

A statement begins with the message Query or Parse (postgresql.org/docs/current/protocol-message-formats.html). The
connections have no TLS.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import BinaryIO

BEFORE, AFTER = "before", "after"
_QUERY, _PARSE, _READY, _FLUSH, _SYNC, _END = b"Q", b"P", b"Z", b"H", b"S\0\0\0\4", b"X"


class CuttingProxy:
    """`cuts`: number of a statement -> whether its connection ends BEFORE or AFTER the server carries it out.

    The client gets no answer in either case. `statements` are those that clients began, and `cut` those of `cuts`;
    `trips` counts how often a client had waited for an answer before it went on.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.begin({})
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, cuts: dict[int, str]) -> None:
        """Count from 1 again."""
        self.cuts, self.statements, self.cut, self.trips = cuts, list[bytes](), list[bytes](), 0

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ends = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self._server_port))
                events = threading.Event(), threading.Event()
                for run in (self._pass_statements, self._pass_answers):
                    threading.Thread(target=run, args=(*ends, *events), daemon=True).start()

    def _pass_statements(
        self, client: socket.socket, server: socket.socket, is_cut: threading.Event, has_answer: threading.Event
    ) -> None:
        with _both(client, server), client.makefile("rb") as reader:
            server.sendall(_read(reader, typed=False))
            while True:
                message = _read(reader)
                self.trips += has_answer.is_set() and message[:1] != _END
                has_answer.clear()
                if message[:1] in (_QUERY, _PARSE):
                    statement = message[5:].lstrip(b"\0").partition(b"\0")[0].strip()
                    self.statements.append(statement)
                    if (moment := self.cuts.get(len(self.statements))) is not None:
                        self.cut.append(statement)
                        is_cut.set()
                    if moment == BEFORE:
                        return
                # Only then does the server say that it is ready.
                server.sendall(_SYNC if is_cut.is_set() and message[:1] == _FLUSH else message)

    def _pass_answers(
        self, client: socket.socket, server: socket.socket, is_cut: threading.Event, has_answer: threading.Event
    ) -> None:
        with _both(client, server), server.makefile("rb") as reader:
            while True:
                message = _read(reader)
                if not is_cut.is_set():
                    has_answer.set()
                    client.sendall(message)
                elif message[:1] == _READY:
                    return


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
