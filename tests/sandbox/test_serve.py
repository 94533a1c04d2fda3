"""`sandbox serve|status|reset`: one store for commands and HTTP clients, and one owner at a time."""

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest
from e2e.script import Program, finish
from wire_server import say_nothing
from wire_server import serving as serving_wire

from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.sandbox.ownership import ServedSandbox, announce_server, claim_store, find_server
from sandbox.serving import Served, serving

CREATE = ("--sandbox", "tx", "create", "--amount", "7.50", "--currency", "EUR", "-q")


@pytest.fixture
def served(program: Program, tmp_path: Path) -> Iterator[Served]:
    with serving(program, tmp_path, "--json") as running:
        yield running


def test_serve_prints_its_address_and_writes_a_private_ready_file(served: Served) -> None:
    assert served.process.stdout is not None
    assert json.loads(served.process.stdout.readline()) == served.ready
    assert (served.ready.keys(), served.ready["pid"]) == (READY.keys(), served.process.pid)
    assert stat.filemode(served.ready_file.stat().st_mode) == "-rw-------"


@pytest.mark.slow
def test_commands_and_http_clients_share_one_store(program: Program, tmp_path: Path) -> None:
    before = program.run(*CREATE).out.strip()
    with serving(program, tmp_path) as served:
        while_served = program.run(*CREATE)
        status, made = served.call("POST", "/transactions", '{"amount":1.10,"currency":"USD"}')
        seen_by_http = [item["id"] for item in served.call("GET", "/transactions")[1]["data"]]
        seen_by_command = program.run("--sandbox", "tx", "list", "-q").out.split()
        assert served.end(signal.SIGTERM) == 0
    after = program.run("--sandbox", "tx", "list", "-q").out.split()

    assert (status, made["amount"]) == (200, 1.1)
    expected = [made["id"], while_served.out.strip(), before]
    assert (seen_by_http, seen_by_command, after) == (expected, expected, expected)
    assert (while_served.code, while_served.err) == (0, "")


@pytest.mark.slow
def test_served_sandbox_ignores_variables_that_name_other_services(program: Program, served: Served) -> None:
    with serving_wire(say_nothing) as trap:
        there = program.with_environ(
            HTTP_PROXY=trap.base_url,
            HTTPS_PROXY=trap.base_url,
            ALL_PROXY=trap.base_url,
            ESCROWCTL_BASE_URL=trap.base_url,
            ESCROWCTL_API_KEY="sk_live_1",
            ESCROWCTL_PROFILE="nowhere",
        )
        result = there.run(*CREATE)

        assert (result.code, trap.seen) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sandbox", "serve", "--port", "0"), ("sandbox", "reset", "--yes")])
def test_served_sandbox_refuses_a_second_owner(program: Program, served: Served, words: tuple[str, ...]) -> None:
    result = program.run(*words)

    assert (result.code, result.out) == (7, "")
    assert (served.ready["base_url"] in result.err, str(served.process.pid) in result.err) == (True, True)


def test_commands_share_the_store_and_a_server_waits(folder: Path) -> None:
    first, second = claim_store(folder), claim_store(folder)
    first.close()
    with pytest.raises(EscrowctlError) as raised:
        claim_store(folder, exclusive=True, timeout=0)
    second.close()
    alone = claim_store(folder, exclusive=True, timeout=0)
    with pytest.raises(EscrowctlError):
        claim_store(folder, timeout=0)
    alone.close()

    assert raised.value.code is ErrorCode.BUSY


@pytest.fixture
def claim(folder: Path) -> Iterator[FileIO]:
    """An exclusive lock on the folder, as a server holds it."""
    claim = claim_store(folder, exclusive=True, timeout=0)
    yield claim
    claim.close()


SERVED = ServedSandbox("http://127.0.0.1:4650", "sk_sandbox_0", "sbx_0", os.getpid())


def test_server_is_found_while_it_is_announced(folder: Path, claim: FileIO) -> None:
    with announce_server(claim, SERVED):
        assert find_server(folder) == SERVED
        with pytest.raises(EscrowctlError, match=SERVED.base_url):
            claim_store(folder, timeout=0)
    assert find_server(folder) is None


@pytest.mark.parametrize(
    "base_url",
    [
        *("http://192.0.2.7:4650", "https://127.0.0.1:4650", "http://127.0.0.1:4650@192.0.2.7:80"),
        *("http://127.0.0.1:4650/x", "http://127.0.0.1", "http://127.0.0.1:4650\n"),
    ],
)
def test_server_address_off_this_machine_is_ignored(folder: Path, claim: FileIO, base_url: str) -> None:
    with announce_server(claim, SERVED._replace(base_url=base_url)):
        assert find_server(folder) is None
        with pytest.raises(EscrowctlError):
            claim_store(folder, timeout=0)


def test_address_without_a_server_is_ignored(folder: Path, claim: FileIO) -> None:
    with announce_server(claim, SERVED):
        content = (folder / "sandbox.lock").read_bytes()
    claim.close()
    (folder / "sandbox.lock").write_bytes(content)

    assert find_server(folder) is None
    claim_store(folder, timeout=0).close()


@pytest.mark.representative("15-0")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_server_ended_by_a_signal_removes_its_files(served: Served, program: Program, number: int, code: int) -> None:
    assert served.end(number) == code
    folder = program.state / "sandbox"
    left = sorted(path.name for path in folder.iterdir() if not path.name.endswith("-journal"))
    assert (left, served.ready_file.exists()) == (["sandbox.db", "sandbox.lock"], False)


@pytest.mark.slow
def test_server_that_ends_answers_requests_in_progress(served: Served) -> None:
    request = (
        f"POST /api/v1/transactions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.ready['key']}\r\n"
        'Content-Type: application/json\r\nContent-Length: 31\r\n\r\n{"amount":100,"currency":"USD"}'
    )
    connections = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    for connection in connections:
        connection.sendall(request.encode())
        # The server has the request: one byte of its answer has arrived.
        assert connection.recv(1) == b"H"
    assert served.end(signal.SIGTERM) == 0
    ends = [connection.makefile("rb").read() for connection in connections]
    for connection in connections:
        connection.close()

    assert [end.startswith(b"TTP/1.1 200 OK") and end.rstrip().endswith(b"}") for end in ends] == [True] * 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 421), ("127.0.0.1.evil.example:80", 421), ("[::1]", 200)]
)
def test_request_for_another_host_is_421(served: Served, host: str, status: int) -> None:
    assert served.call("GET", "/transactions", Host=host)[0] == status


@pytest.mark.slow
def test_serve_on_a_used_port_names_it(program: Program, served: Served, tmp_path: Path) -> None:
    other = program.with_environ(ESCROWCTL_HOME=str(tmp_path / "other"))

    result = other.run("sandbox", "serve", "--port", str(served.port))

    assert (result.code, f"127.0.0.1:{served.port}" in result.err) == (7, True)


READY = {"base_url": "http://127.0.0.1:1", "api_prefix": "/api/v1", "key": "sk_sandbox_1", "openapi": "x", "pid": 1}
"""The ready file of an earlier server."""


def occupy(path: Path, kind: str) -> None:
    """Create something at a path that is not a ready file of escrowctl."""
    others = {"config": '[profiles.a]\nbase_url = "https://a.example"\n', "json": '{"name": 1}', "nested": "[" * 5000}
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.with_name("older.json").write_text(json.dumps(READY))
        path.symlink_to("older.json")
    else:
        path.write_text(others.get(kind, ""))


def look(folder: Path) -> list[tuple[object, ...]]:
    found = sorted((path, path.lstat()) for path in folder.iterdir())
    return [(path.name, at.st_ino, at.st_mode, at.st_mtime_ns, at.st_size) for path, at in found]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["config", "json", "nested", "folder", "fifo", "link"])
def test_serve_refuses_to_replace_another_file_by_its_ready_file(program: Program, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "work" / "ready.json"
    place.parent.mkdir()
    occupy(place, kind)
    before = look(place.parent)

    result = program.run("sandbox", "serve", "--port", "0", "--ready-file", str(place))

    assert (result.code, result.out, look(place.parent)) == (2, "", before)
    assert not program.config.exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_replaced", [False, True])
def test_ready_file_is_replaced_and_deleted_unless_it_is_anothers_by_then(
    program: Program, tmp_path: Path, *, is_replaced: bool
) -> None:
    place = tmp_path / "ready.json"
    place.write_text(json.dumps(READY))

    process = program.start("sandbox", "serve", "--port", "0", "--ready-file", str(place), "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == json.loads(place.read_text())
    if is_replaced:
        place.write_text(json.dumps(READY))
    process.terminate()

    assert (finish(process).code, place.exists()) == (0, is_replaced)


@pytest.mark.slow
def test_reset_empties_the_sandbox_and_changes_its_identity(program: Program) -> None:
    one = program.run(*CREATE).out.strip()
    before = program.run("sandbox", "status", "--json").json
    declined, typed = (program.terminal("sandbox", "reset") for _ in range(2))
    declined.answer("> ", "yes\n")
    assert (declined.finish()[0], program.run("sandbox", "reset", "--json").code) == (3, 3)
    assert program.run("sandbox", "status", "--json").json == before

    typed.answer("> ", "reset\n")
    assert typed.finish()[0] == 0
    after = program.run("sandbox", "status", "--json").json
    assert (before["transactions"], after["transactions"], after["ledger"]) == ({"held": 1}, {}, [])
    assert after["identity"] != before["identity"]
    assert program.run("--sandbox", "tx", "get", one).code == 6


@pytest.mark.slow
def test_status_of_a_served_sandbox_names_the_server(program: Program, served: Served) -> None:
    assert program.run(*CREATE).code == 0

    found = program.run("sandbox", "status", "--json").json

    assert (found["served_at"], found["pid"]) == (served.ready["base_url"], served.process.pid)
    assert (found["transactions"], found["users"], found["webhooks"]) == ({"held": 1}, 2, 0)
    assert found["ledger"] == [{"currency": "EUR", "held": "7.5", "balanced": True}]
