"""An independent HTTP server for benchmarks: replies after a latency, and refuses what is above a limit with 429.

    python limited_server.py PORT [--latency SECONDS] [--limit REQUESTS_A_SECOND] [--retry-after SECONDS]

PORT 0 takes a free one; the port is printed. The limit holds for each second of a sliding window. A GET is answered
with a record of its id, a POST with a new id.
"""

import argparse
import asyncio
import itertools
from collections import deque

_END = b"\r\n\r\n"
_NUMBERS = itertools.count(1)


class Limit:
    """Takes so many in any second."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._taken: deque[float] = deque()

    def takes(self, now: float) -> bool:
        while self._taken and self._taken[0] <= now - 1:
            self._taken.popleft()
        has_room = len(self._taken) < self._rate
        if has_room:
            self._taken.append(now)
        return has_room


class Connection(asyncio.Protocol):
    """One connection: a reply to each request, in order."""

    def __init__(self, latency: float, limit: Limit | None, retry_after: int | None) -> None:
        self._latency = latency
        self._limit = limit
        self._retry_after = retry_after
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(_END)) >= 0:
            first, *lines = self._data[:end].decode("latin-1").split("\r\n")
            length = next((int(line[15:]) for line in lines if line.lower().startswith("content-length:")), 0)
            if len(self._data) < end + len(_END) + length:
                return
            self._data = self._data[end + len(_END) + length :]
            asyncio.get_running_loop().call_later(self._latency, self._reply, first.split())

    def _reply(self, request: list[str]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._limit is None or self._limit.takes(asyncio.get_running_loop().time()):
            status, extra = "200 OK", ""
            name = request[1].rpartition("/")[2] if request[0] == "GET" else f"tx_{next(_NUMBERS)}"
            body = b'{"id":"%s","status":"held","amount":100,"currency":"USD"}' % name.encode()
        else:
            status, body = "429 Too Many Requests", b'{"detail":"slow down"}'
            extra = f"Retry-After: {self._retry_after}\r\n" if self._retry_after is not None else ""
        head = f"HTTP/1.1 {status}\r\n{extra}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def serve() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--retry-after", type=int)
    given = parser.parse_args()
    limit = Limit(given.limit) if given.limit else None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(given.latency, limit, given.retry_after), "127.0.0.1", given.port
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
