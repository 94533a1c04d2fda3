"""A host with several addresses: one that never answers does not hide the next."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import KEY, Result, Run, Serve
from wire_server import WireServer

from cli.conftest import Journal
from cli.replies import CREATE, HELD, json_reply

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have 127.0.0.1 alone")

SILENT, CLOSED, SERVED = "127.0.0.2", "127.0.0.3", "127.0.0.1"

RunAt = Callable[..., Result]


@pytest.fixture
def server(serve: Serve) -> WireServer:
    return serve(json_reply(HELD))


@pytest.fixture
def silent_address(server: WireServer) -> Iterator[str]:
    """Fill the backlog of a listener that accepts nothing: the kernel drops every further SYN."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((SILENT, server.port), backlog=0))
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        yield SILENT


@pytest.fixture
def run_at(server: WireServer, silent_address: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> RunAt:
    """Run a line at a host that has these addresses."""
    look_up = socket.getaddrinfo

    def run_line(addresses: tuple[str, ...], *words: str) -> Result:
        def resolve(host: str, port: int, *words: int, **options: int) -> list[object]:
            hosts = addresses if host == "localhost" else (host,)
            return [row for each in hosts for row in look_up(each, port, *words, **options)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        environ = {"ESCROWCTL_BASE_URL": f"http://localhost:{server.port}", "ESCROWCTL_API_KEY": KEY}
        return run(*words, "--timeout", "1", "--json", environ=environ)

    return run_line


@pytest.mark.parametrize("addresses", [(SILENT, CLOSED, SERVED), (SERVED, SILENT)])
def test_next_address_is_tried_when_one_never_answers(
    server: WireServer, run_at: RunAt, journal: Journal, addresses: tuple[str, ...]
) -> None:
    result = run_at(addresses, *CREATE)

    assert (result.code, len(server.writes)) == (0, 1)
    assert journal() == [("create_transaction", "done")]


@pytest.mark.slow
def test_write_without_a_reachable_address_is_not_sent(server: WireServer, run_at: RunAt, journal: Journal) -> None:
    result = run_at((CLOSED, SILENT), *CREATE)

    assert (result.code, result.error["outcome"], server.seen) == (11, "not_sent", [])
    assert journal() == [("create_transaction", "not_sent")]
