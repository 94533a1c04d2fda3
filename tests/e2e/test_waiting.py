"""The line that is drawn during a wait: at a terminal only, gone afterwards, and never in the way of the request."""

import socket
import time

import pytest
from cli.replies import CREATE, HELD
from conftest import Serve
from webhooks.listener import wait_until
from wire_server import Behave, Seen, http_reply, say_nothing

from e2e.script import Program, plain

pytestmark = pytest.mark.slow

ERASE = "\r\x1b[K"


def slow(seconds: float) -> Behave:
    """Answer with the record after this time."""

    def behave(_seen: Seen, connection: socket.socket) -> None:
        time.sleep(seconds)
        connection.sendall(http_reply("200 OK", HELD))

    return behave


@pytest.mark.parametrize("words", [CREATE, ("tx", "get", "tx_1")], ids=["create", "get"])
def test_wait_of_a_second_is_drawn_and_erased(words: tuple[str, ...], program: Program, serve: Serve) -> None:
    server = serve(slow(1.7))

    code, shown = program.at(server).terminal(*words).finish()

    drawn, _, rest = shown.rpartition(ERASE)
    assert (code, f"\rwaiting for {server.base_url}  1 s\x1b[K" in shown) == (0, True)
    assert "waiting" in drawn
    assert plain(rest).split() == ["id", "tx_1", "status", "held", "amount", "100", "currency", "USD"]


@pytest.mark.parametrize(
    ("words", "variables"),
    [(("--json",), {}), (("-q",), {}), ((), {"CI": "true"}), ((), {"TERM": "dumb"})],
    ids=["--json", "-q", "CI", "dumb terminal"],
)
def test_nothing_is_drawn_for_programs(
    words: tuple[str, ...], variables: dict[str, str], program: Program, serve: Serve
) -> None:
    there = program.at(serve(slow(1.5))).with_environ(**variables)

    code, shown = there.terminal("tx", "get", "tx_1", *words).finish()

    assert (code, "waiting" in shown, "\x1b[K" in shown) == (0, False, False)


def test_retry_is_reported_and_its_wait_is_drawn(program: Program, serve: Serve) -> None:
    replies = [http_reply("503 Busy", b"", "Retry-After: 1")]

    def behave(seen: Seen, connection: socket.socket) -> None:
        connection.sendall(replies.pop()) if replies else slow(1.5)(seen, connection)

    code, shown = program.at(serve(behave)).terminal("tx", "get", "tx_1").finish()

    assert (code, "retrying in 1 s, attempt 2 of 3\r\n" in shown) == (0, True)
    assert f"  1 s\x1b[K{ERASE}" in shown


def test_interrupted_create_is_reported_on_lines_of_its_own(program: Program, serve: Serve) -> None:
    there = program.at(serve(say_nothing))
    terminal = there.terminal(*CREATE)

    terminal.answer("1 s\x1b[K", "\x03")
    code, shown = terminal.finish()

    report = shown.rpartition(ERASE)[2]
    assert (code, plain(report).startswith("unknown: the create was sent")) == (12, True)
    assert there.journal() == [("create_transaction", "unknown")]


def test_stopped_terminal_does_not_hold_up_a_create(program: Program, serve: Serve) -> None:
    there = program.at(serve(slow(3)))
    terminal = there.terminal(*CREATE)
    terminal.answer("1 s\x1b[K", "\x13")

    wait_until(lambda: there.journal() == [("create_transaction", "done")], "the create was done")
    terminal.process.send("\x11")
    code, shown = terminal.finish()

    assert (code, "tx_1" in shown) == (0, True)


def test_interrupted_watch_ends_with_130(program: Program, serve: Serve) -> None:
    terminal = program.at(serve(slow(0))).terminal("tx", "watch", "tx_1")

    terminal.answer("watching: tx_1 (held)  1 s\x1b[K", "\x03")
    code, shown = terminal.finish()

    assert (code, plain(shown).endswith("error: stopped.\n")) == (130, True)
