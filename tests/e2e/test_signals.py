"""Ctrl-C and SIGTERM at the moments that decide about money, sent to the installed script."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from cli.replies import CREATE, HELD, RELEASED, in_turn
from conftest import KEY, Result, Serve
from webhooks.listener import wait_until
from wire_server import Behave, Seen, answering, by_method, hang_up, http_reply, say_nothing

from e2e.script import SECONDS, Program, finish, plain

STOPS = ((signal.SIGINT, 130), (signal.SIGTERM, 143))


class Arrival:
    """A behaviour that is done when a request arrives, and tells the test that it did."""

    def __init__(self, then: Behave = say_nothing) -> None:
        self._then = then
        self._arrived = threading.Event()

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        self._arrived.set()
        self._then(seen, connection)

    def wait(self) -> None:
        assert self._arrived.wait(SECONDS), "no such request arrived"

    def interrupt(self, process: "subprocess.Popen[str]", number: int = signal.SIGINT) -> Result:
        """Wait for the request, send the signal, and return how the process ended."""
        self.wait()
        process.send_signal(number)
        return finish(process)


Wait = Callable[["subprocess.Popen[str]"], None]


@contextmanager
def deaf_to_handshakes() -> Iterator[tuple[str, Wait]]:
    """A TLS port that reads and never answers; yields its URL, and what waits for a client's hello."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        accepted: list[socket.socket] = []

        def wait(_process: "subprocess.Popen[str]") -> None:
            accepted.append(listener.accept()[0])
            tls_handshake = b"\x16\x03"
            assert accepted[0].recv(65536)[:2] == tls_handshake

        yield f"https://127.0.0.1:{listener.getsockname()[1]}", wait
        for connection in accepted:
            connection.close()


@contextmanager
def deaf_to_connections() -> Iterator[tuple[str, Wait]]:
    """A port whose queue of connections is full, so that connecting never ends; yields its URL, and what waits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.settimeout(0)
            one.connect_ex(("127.0.0.1", port))

        def wait(process: "subprocess.Popen[str]") -> None:
            wait_until(lambda: connecting(process, port), "it was connecting")

        yield f"http://127.0.0.1:{port}", wait
        for one in waiting:
            one.close()


def connecting(process: "subprocess.Popen[str]", port: int) -> bool:
    """Whether the process has a socket that waits for the answer to its SYN, by /proc/net/tcp (state 02)."""
    lines = Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]
    waiting = {row[9] for row in map(str.split, lines) if row[2].endswith(f":{port:04X}") and row[3] == "02"}
    links = set()
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.add(str(link.readlink()))
    return any(f"socket:[{inode}]" in links for inode in waiting)


def answer_held(seen: Seen, connection: socket.socket) -> None:
    resource_id = seen.target.rpartition("/")[2].encode()
    connection.sendall(http_reply("200 OK", HELD.replace(b"tx_1", resource_id)))


def answer_done(_seen: Seen, connection: socket.socket) -> None:
    connection.sendall(http_reply("204 No Content"))


# Before a byte left


on_linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says who is connecting")


@pytest.mark.slow
@pytest.mark.parametrize("deaf", [deaf_to_handshakes, pytest.param(deaf_to_connections, marks=on_linux)])
@pytest.mark.parametrize(("number", "code"), STOPS)
def test_signal_before_a_byte_left_leaves_the_write_not_sent(
    program: Program, deaf: Callable[[], AbstractContextManager[tuple[str, Wait]]], number: signal.Signals, code: int
) -> None:
    with deaf() as (url, wait):
        there = program.with_environ(ESCROWCTL_BASE_URL=url, ESCROWCTL_API_KEY=KEY)
        process = there.start(*CREATE)
        wait(process)
        process.send_signal(number)
        ended = finish(process)
    assert (ended.code, ended.out) == (code, "")
    assert there.journal() == [("create_transaction", "not_sent")]


@pytest.mark.parametrize(("keys", "code"), [("\x03", 130), ("\x04", 3)], ids=["Ctrl-C", "Ctrl-D"])
def test_unanswered_confirmation_releases_nothing(program: Program, serve: Serve, keys: str, code: int) -> None:
    server = serve(by_method(GET=answer_held))
    there = program.at(server)
    release = there.terminal("tx", "release", "tx_1")
    release.answer("> ", keys)
    ended, shown = release.finish()
    assert (ended, plain(shown).splitlines()[-1].startswith("error: ")) == (code, True)
    assert (server.writes, there.journal()) == ([], [])


# After bytes left


@pytest.mark.representative("15")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_after_a_release_was_received_reports_unknown(
    program: Program, serve: Serve, number: signal.Signals
) -> None:
    put = Arrival()
    server = serve(by_method(GET=answer_held, PUT=put))
    there = program.at(server)
    ended = put.interrupt(there.start("tx", "release", "tx_1", "--yes", "--json"), number)

    entry, url = there.entry("j1"), f"{server.base_url}/api/v1/transactions/tx_1/release"
    assert (ended.code, ended.out) == (12, "")
    facts = {
        "code": "outcome_unknown",
        "http_status": None,
        "request_id": entry["request_id"],
        "outcome": "unknown",
        "exit_code": 12,
        "id": "tx_1",
        "entry": "j1",
        "idempotency_key": server.writes[0].header("Idempotency-Key"),
        "sent_at": entry["sent_at"],
        "request": {"method": "PUT", "url": url, "body": None},
    }
    assert ended.error.items() >= facts.items()
    assert "escrowctl journal resolve j1" in ended.error["hint"]
    assert there.journal() == [("release_transaction", "unknown")]
    assert len(server.writes) == 1


@pytest.mark.slow
def test_signal_during_the_read_back_reports_the_release_first(program: Program, serve: Serve) -> None:
    read_back = Arrival()
    server = serve(by_method(GET=in_turn(answer_held, read_back), PUT=answering(http_reply("200 OK", RELEASED))))
    there = program.at(server)
    ended = read_back.interrupt(there.start("tx", "release", "tx_1", "--yes", "--json"))
    assert (ended.code, ended.json["id"], ended.json["http_status"], ended.json["verified"]) == (130, "tx_1", 200, None)
    assert there.journal() == [("release_transaction", "unconfirmed")]


@pytest.mark.slow
def test_ctrl_c_held_down_is_still_unknown(program: Program, serve: Serve) -> None:
    post = Arrival()
    server = serve(by_method(POST=post))
    there = program.at(server)
    process = there.start(*CREATE)
    post.wait()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)  # signals of one kind that wait for the process become one
    ended = finish(process)
    assert (ended.code, ended.out) == (12, "")
    assert "Traceback" not in ended.err
    assert there.journal() == [("create_transaction", "unknown")]
    assert len(server.writes) == 1


@pytest.mark.slow
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_does_not_change_the_exit_code_of_unknown(
    program: Program, serve: Serve, second: signal.Signals
) -> None:
    post = Arrival()
    there = program.at(serve(by_method(POST=post)))
    readable, writable = os.pipe()
    with closing(os.fdopen(readable, "rb")) as reader:
        fill(writable)
        process = there.start(*CREATE, stderr=writable)
        os.close(writable)
        post.wait()
        process.send_signal(signal.SIGINT)
        wait_until(lambda: there.journal() == [("create_transaction", "unknown")], "the outcome was recorded")
        wait_until(lambda: blocked_in_write(process.pid), "it was stuck in telling of it")
        process.send_signal(second)
        time.sleep(0.2)  # the handler runs while no reader waits
        drained = threading.Thread(target=reader.read)
        drained.start()
        ended = finish(process)
        drained.join()
    assert ended.code == 12


def fill(handle: int) -> None:
    """Fill a pipe, so that the next to write to it must wait."""
    flags = fcntl.fcntl(handle, fcntl.F_GETFL)
    fcntl.fcntl(handle, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(handle, b"\n" * 4096)
    except BlockingIOError:
        fcntl.fcntl(handle, fcntl.F_SETFL, flags)


def blocked_in_write(pid: int) -> bool:
    """Whether the process sleeps without the use of a moment of processor time for a while."""

    def state() -> tuple[str, str, str]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[11], fields[12]

    before = state()
    time.sleep(0.15)
    return before[0] == "S" and state() == before


# Several releases on one line


THREE = ("tx", "release", "tx_1", "tx_2", "tx_3", "--yes", "--json")
FIRST = "/api/v1/transactions/tx_1/release"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_while_one_of_several_waits_releases_no_other(
    program: Program, serve: Serve, number: signal.Signals
) -> None:
    put = Arrival()
    server = serve(by_method(GET=answer_held, PUT=in_turn(put, answer_done, answer_done)))
    there = program.at(server)
    ended = put.interrupt(there.start(*THREE), number)
    assert [seen.target for seen in server.writes] == [FIRST]
    assert ended.code == 12
    assert there.journal() == [("release_transaction", "unknown")]


@pytest.mark.slow
def test_signal_after_one_of_several_became_unknown_exits_12(program: Program, serve: Serve) -> None:
    second_read = Arrival()
    server = serve(by_method(GET=in_turn(answer_held, second_read), PUT=hang_up))
    there = program.at(server)
    assert second_read.interrupt(there.start(*THREE)).code == 12
    assert [seen.target for seen in server.writes] == [FIRST]
    assert there.journal() == [("release_transaction", "unknown")]


@pytest.mark.slow
def test_signal_during_the_read_back_of_several_releases_no_other(program: Program, serve: Serve) -> None:
    read_back = Arrival()
    server = serve(by_method(GET=in_turn(answer_held, read_back), PUT=answer_done))
    there = program.at(server)
    ended = read_back.interrupt(there.start(*THREE))
    assert [seen.target for seen in server.writes] == [FIRST]
    assert there.journal() == [("release_transaction", "unconfirmed")]
    assert ended.code == 130
    (line,) = map(json.loads, ended.out.splitlines())
    assert (line["id"], line["outcome"], line["verified"]) == ("tx_1", "done", None)


def test_signal_between_two_of_several_prints_the_first(program: Program, serve: Serve) -> None:
    second_read = Arrival()
    server = serve(by_method(GET=in_turn(answer_held, answer_held, second_read), PUT=answer_done))
    ended = second_read.interrupt(program.at(server).start("tx", "release", "tx_1", "tx_2", "--yes", "-q"))
    assert (ended.code, ended.out) == (130, "tx_1\n")
    assert [seen.target for seen in server.writes] == [FIRST]


# Reads


@pytest.mark.representative("15-*")
@pytest.mark.parametrize(("number", "code"), STOPS)
def test_signal_during_a_read_is_reported_and_not_recorded(
    program: Program, serve: Serve, number: signal.Signals, code: int
) -> None:
    get = Arrival()
    there = program.at(serve(by_method(GET=get)))
    ended = get.interrupt(there.start("tx", "get", "tx_1"), number)
    assert (ended.code, ended.out) == (code, "")
    assert there.journal() == []


_SIGNAL_AT_CLOSE = """
import os, signal, sys
from escrowctl.client.connection import Connection
from escrowctl.main import main

close = Connection.close

def close_meanwhile(client):
    os.kill(os.getpid(), signal.SIGINT)
    close(client)

Connection.close = close_meanwhile
sys.exit(main())
"""


@pytest.mark.slow
def test_signal_after_all_output_prints_nothing(program: Program, serve: Serve) -> None:
    there = program.at(serve(by_method(POST=answering(http_reply("200 OK", HELD)))))
    ended = there.python(_SIGNAL_AT_CLOSE, *CREATE, "-q")
    assert (ended.code, ended.out, ended.err) in ((0, "tx_1\n", ""), (130, "tx_1\n", ""))


@pytest.mark.slow
def test_broken_connection_at_exit_prints_nothing(program: Program, serve: Serve) -> None:
    """After the answer the server resets the connection that is kept alive: it is no longer needed."""

    def answer_and_reset(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(http_reply("200 OK", HELD))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    ended = program.at(serve(answer_and_reset)).run("tx", "get", "tx_1", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "tx_1\n", "")
