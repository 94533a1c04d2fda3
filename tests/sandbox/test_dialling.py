"""Where events go: to this machine only, unless an address range is allowed; and for how long an attempt may take."""

import contextlib
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from conftest import Serve
from wire_server import Behave, Seen, answering, http_reply, say_nothing

from escrowctl.sandbox.dialling import DialError, Dialler

SCRIPT = Path(__file__).with_name("dialled.py")
OUTSIDE = "169.254.169.254"

HERE = ("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:7f00:1]", "here.example")

LITERALS = (
    *("10.0.0.1", "10.1", "167772161", "0xa000001", "012.0.0.1", "172.16.0.1", "192.168.1.1", "192.168.257"),
    *("3232235777", "100.64.0.1", "198.18.0.1", "192.0.2.1", "203.0.113.7", "8.8.8.8", "134744072", "1.1.1.1"),
    *("169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.254.43518"),
    *("224.0.0.1", "255.255.255.255", "240.0.0.1", "0.0.0.0", "0", "0x0", "0.1.2.3", "126.255.255.255", "128.0.0.1"),
    *("[::]", "[::ffff:a00:1]", "[::ffff:a9fe:a9fe]", "[::ffff:0:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[::ffff:0:0]"),
    *("[2002:a9fe:a9fe::]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[::a9fe:a9fe]"),
    *("[2606:4700:4700::1111]", "[::2]", "[0:0:0:0:0:ffff:808:808]", "[::127.0.0.1]"),
)

UNTRUE = ("127.0.0.1@10.0.0.1", "10.0.0.1#@127.0.0.1", "127.0.0.1\\@10.0.0.1", "127.0.0.1%2f@10.0.0.1")
"""Hosts that readers of URLs disagree about."""

NAMES = {
    "here.example": [["127.0.0.1"]],
    "metadata.example": [[OUTSIDE]],
    "two-faced.example": [["127.0.0.9", "10.0.0.1"]],  # nothing listens at the first
    "two-faced6.example": [["::1", "fe80::1"]],
    "late.example": [["10.0.0.1"], ["127.0.0.1"]],
    "any.example": [["0.0.0.0"]],
    "mapped.example": [["::ffff:169.254.169.254"]],
    "local6.example": [["fd00::1"]],
    "nowhere.example": [[]],
    "rebinding.example": [["127.0.0.1"], [OUTSIDE]],
}
"""Name -> its addresses at each look-up, in turn."""

REFUSED = (*LITERALS, *UNTRUE, *(name for name in NAMES if name not in ("here.example", "rebinding.example")))


def deliver(*hosts: str, fault: str = "", allowed: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Deliver one event to each host in a process that records what it connects to."""
    given = {"targets": [f"http://{host}:PORT/hooks" for host in hosts], "names": NAMES, "allowed": allowed}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), fault],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(Path.cwd())]))},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def outside(results: list[dict[str, Any]]) -> list[str]:
    return [host for one in results for host in one["dialled"] if not ipaddress.ip_address(host).is_loopback]


def test_no_target_is_dialled_outside_this_machine() -> None:
    results = deliver(*HERE, "rebinding.example", *REFUSED)

    assert len(results) > 60
    assert outside(results) == []
    answered, others = results[: len(HERE) + 1], results[len(HERE) + 1 :]
    # They reply with a redirect to the outside, which is not followed.
    assert [(one["dialled"], one["status"]) for one in answered] == [(["127.0.0.1"], 302)] * len(answered)
    assert [(host, one) for host, one in zip(REFUSED, others, strict=True) if one["dialled"] or one["status"]] == []


@pytest.mark.thorough
def test_refusal_names_the_address_and_the_way_to_allow_it() -> None:
    first, second, third = deliver("10.1", "two-faced.example", "nowhere.example")

    allow = "is not on this machine: allow it with sandbox serve --allow-cidr"
    assert first["error"] == f"10.1 is 10.0.0.1, which {allow}"
    assert second["error"] == f"two-faced.example is 10.0.0.1, which {allow}"
    assert third["error"] == "nowhere.example has no address"


@pytest.mark.thorough
def test_allowed_range_is_dialled_and_no_other() -> None:
    results = deliver("10.0.0.1", "two-faced.example", "11.0.0.1", "[::ffff:a00:1]", allowed=("10.0.0.0/8", "::/0"))

    assert [one["dialled"] for one in results] == [["10.0.0.1"], ["127.0.0.9", "10.0.0.1"], [], ["10.0.0.1"]]


@pytest.mark.thorough
@pytest.mark.parametrize("fault", ["first only", "twice", "redirects"])
def test_harness_sees_a_dialler_with_a_fault(fault: str) -> None:
    host = {"first only": "two-faced.example", "twice": "rebinding.example", "redirects": "127.0.0.1"}[fault]

    assert outside(deliver(host, fault=fault)) != []


def drip(_seen: Seen, connection: socket.socket) -> None:
    """Send a head that never ends, a byte now and then."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.01)


@pytest.mark.representative("dripping")
@pytest.mark.parametrize("behave", [say_nothing, drip], ids=["silent", "dripping"])
def test_attempt_ends_in_time(serve: Serve, behave: Behave) -> None:
    start = time.monotonic()
    with pytest.raises(DialError, match=r"^no reply within 0\.1 s$") as raised:
        Dialler().post(f"{serve(behave).base_url}/", {}, b"{}", seconds=0.1)

    assert raised.value.timed_out
    assert time.monotonic() - start < 2


def test_little_of_a_reply_is_read(serve: Serve) -> None:
    sent: list[int] = []

    def flood(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while len(sent) < 10_000:
            connection.sendall(b"x" * 65536)
            sent.append(65536)

    assert Dialler().post(f"{serve(flood).base_url}/", {}, b"{}", seconds=5).status == 200
    assert sum(sent) < 50_000_000, "only what the buffers of both sockets hold"


@pytest.mark.thorough
def test_body_that_does_not_come_is_not_waited_for(serve: Serve) -> None:
    promise = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    start = time.monotonic()

    assert Dialler().post(f"{serve(promise).base_url}/", {}, b"{}", seconds=15).status == 200
    assert time.monotonic() - start < 8


@pytest.mark.thorough
def test_name_that_is_not_resolved_in_time_ends_the_attempt() -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        time.sleep(0.5)
        return ["127.0.0.1"]

    with pytest.raises(DialError, match=r"was not resolved in time|no reply within"):
        Dialler(resolve=resolve).post("http://slow.example/", {}, b"", seconds=0.05)


def test_next_address_is_dialled_where_the_first_does_not_listen(serve: Serve) -> None:
    server = serve(answering(http_reply("200 OK")))
    dialler = Dialler(resolve=lambda _host, _port: ["127.0.0.2", "127.0.0.1"])

    assert dialler.post(f"http://both.example:{server.port}/x", {}, b"", seconds=5).status == 200
    assert server.seen[0].header("host") == f"both.example:{server.port}"


@pytest.fixture
def secure_port() -> Iterator[int]:
    """A TLS server with a certificate that is not trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def handshake() -> None:
            connection, _ = listener.accept()
            with closing(connection), contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True)

        threading.Thread(target=handshake, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.thorough
def test_certificate_that_is_not_trusted_is_refused(secure_port: int) -> None:
    with pytest.raises(DialError, match="the TLS handshake failed"):
        Dialler().post(f"https://localhost:{secure_port}/", {}, b"{}", seconds=5)
