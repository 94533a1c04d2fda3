"""A process that delivers one event to each target on stdin, and prints which addresses it really connected to.

An audit hook of the interpreter sees every connect(2) of Python code, whoever makes it, and lets none leave this
machine. `names` on stdin are the answers to each look-up of a name, in turn: a name may change its mind.
Nothing else is looked up. The first argument names a fault, to prove that the harness sees it.
"""

import ipaddress
import json
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from escrowctl.sandbox import dialling
from escrowctl.sandbox.service import Sandbox
from escrowctl.sandbox.store import open_store

dialled: list[str] = []
given: dict[str, Any] = json.loads(sys.stdin.read())
answers: dict[str, list[list[str]]] = given["names"]
look_up_literal = socket.getaddrinfo


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
        dialled.append(host)
        if not ipaddress.ip_address(host).is_loopback:
            raise ConnectionRefusedError(f"{host} is outside")


def look_up(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
    if host not in answers:
        return look_up_literal(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    found = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
    return [
        (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found
    ]


def check_first_only() -> None:
    check = dialling.Dialler._check

    def check_one(self: dialling.Dialler, host: str, found: Sequence[str]) -> Sequence[dialling.Address]:
        return [*check(self, host, found[:1]), *(ipaddress.ip_address(one) for one in found[1:])]

    dialling.Dialler._check = check_one  # type: ignore[method-assign] # that is the fault


def look_up_twice() -> None:
    def dial(addresses: Sequence[Any], port: int, deadline: Any) -> socket.socket:
        host = next(name for name in answers if name in given["target"])
        return socket.create_connection((host, port), timeout=1)

    dialling._dial = dial


def follow_redirects() -> None:
    read = dialling._read_reply

    def follow(connection: Any, deadline: Any) -> Any:
        reply = read(connection, deadline)
        if reply.status in range(300, 400):
            socket.create_connection(("169.254.169.254", 80), timeout=1)
        return reply

    dialling._read_reply = follow


FAULTS = {"": lambda: None, "first only": check_first_only, "twice": look_up_twice, "redirects": follow_redirects}


def answer(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 302 X\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
        connection.close()


def deliver_to(target: str, sandbox: Sandbox, client: httpx.Client) -> dict[str, Any]:
    """Register the target and deliver one event to it: whether it was registered, what was dialled, how it ended."""
    given["target"] = target
    made = client.post("http://x/api/v1/webhooks", json={"url": target})
    created = client.post("http://x/api/v1/transactions", json={"amount": 1, "currency": "USD"}).json()
    dialled.clear()
    sandbox.deliver()
    listed = client.get("http://x/sandbox/deliveries?limit=1").json()["data"]
    found: dict[str, Any] = next((one for one in listed if one["transaction"] == created["id"]), {})
    if made.status_code == 201:
        client.put(f"http://x/sandbox/webhooks/{made.json()['id']}", json={"status": "disabled"})
    return {
        "registered": made.status_code == 201,
        "dialled": [*dialled],
        "status": found.get("last_status"),
        "error": found.get("last_error"),
    }


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=answer, args=(listener,), daemon=True).start()
    socket.getaddrinfo = look_up
    sys.addaudithook(watch)
    FAULTS[sys.argv[1]]()
    port = listener.getsockname()[1]
    allowed = [ipaddress.ip_network(one) for one in given.get("allowed", [])]
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "s", now=lambda: now, alone=True)
        sandbox = Sandbox(store, now=lambda: now, allowed=allowed)
        headers = {"Authorization": f"Bearer {sandbox.key}"}
        with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app), headers=headers) as client:
            results = [deliver_to(one.replace("PORT", str(port)), sandbox, client) for one in given["targets"]]
        sandbox.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
