"""One row of the table run for one command: over a socket, through a proxy, in-process."""

import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import KEY, Result, Run
from wire_server import WireServer

from faults.misbehaving_service import MisbehavingServer, record
from faults.service_faults import NEVER_SENT, NO_BODY, WRITES, Reply, Row

HOST = "escrow.test"
READING_NAME = "release, its reading"

OUTCOMES = {0: "done", 16: "done", 11: "not_sent", 12: "unknown", **dict.fromkeys((4, 5, 6, 7, 8, 9), "refused")}
"""Exit code of a write -> what its journal entry and its error must say."""


@dataclass(frozen=True)
class Command:
    """A command line, its right reply, and the number of reads before its write."""

    name: str
    line: tuple[str, ...]
    right: bytes
    reads_first: int = 0

    @property
    def writes(self) -> bool:
        return self.name in WRITES


LINES = {
    "create": Command("create", ("tx", "create", "--amount", "100", "--currency", "USD"), record("tx_made")),
    "get": Command("get", ("tx", "get", "tx_read"), record("tx_read")),
    "release": Command("release", ("tx", "release", "tx_paid", "--yes"), record("tx_paid"), reads_first=1),
    "list": Command("list", ("tx", "list"), b"[" + record("tx_1") + b"," + record("tx_2") + b"]"),
    "webhook": Command("webhook", ("webhook", "create", "--url", "https://hooks.example.net/x"), record("tx_hook")),
    "update": Command(
        "update", ("tx", "update", "tx_noted", "--data", '{"note":"x"}', "--yes"), record("tx_noted"), reads_first=1
    ),
}
READING = Command(READING_NAME, ("tx", "release", "tx_unread", "--yes"), record("tx_unread"))


Answers = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Application:
    """A WSGI application in the sandbox's place that does what the row says, and counts."""

    identity = "misbehaving"
    key = KEY

    def __init__(self) -> None:
        self.app = self.sender = self
        self.writes = 0
        self.instead: Answers | None = None

    def prepare(self, row: Row, command: Command) -> None:
        self.row, self.command, self.writes = row, command, 0

    def deliver(self) -> None:
        """There are no events."""

    def close(self) -> None:
        """Nothing is open."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_write = environ["REQUEST_METHOD"] != "GET"
        self.writes += is_write
        if self.command.writes and not is_write:
            start_response("200 OK", [("Content-Type", "application/json")])
            return [record(environ["PATH_INFO"])]
        if self.instead is not None:
            return self.instead(environ, start_response)
        reply = self.row.what
        assert isinstance(reply, Reply)
        start_response(reply.status, [(name, value.strip()) for name, _, value in map(split, reply.headers)])
        return [reply.body_of(self.command.right)]


def split(header: str) -> tuple[str, str, str]:
    return header.partition(":")


@dataclass
class CaseRunner:
    """Runs rows for commands in one home; collects what was wrong, and raises it in `finish`."""

    run: Run
    other_server: WireServer
    tls: ssl.SSLContext
    bundle: Path
    wrong: list[str] = field(default_factory=list)
    expected_journal: list[str] = field(default_factory=list)

    def run_case(self, row: Row, command: Command, *, expected: int, tunnel: bool = False) -> None:
        """Run the command against the row, and collect everything that is wrong with its result."""
        with closing(self.make_server(row, command, tunnel=tunnel)) as server:
            result = self.run_against(server, row, command, tunnel=tunnel)
        self.check(row, command, result, expected)
        unread = server.unread if command.writes else 0
        self._check_writes(row, command, len(server.writes) + unread, expected)
        if self.other_server.seen or any(KEY.encode() in line for head in server.tunnels for line in head):
            self.wrong.append(f"{row.name}, {command.name}: the key or the request went elsewhere")

    def run_case_at_proxy(self, row: Row, command: Command, *, expected: int) -> None:
        """The same with a proxy that misbehaves before there is a tunnel."""
        server = MisbehavingServer(row.misbehave, command.right, at_proxy=row.misbehave)
        with closing(server):
            result = self.run_against(server, row, command, tunnel=True)
        self.check(row, command, result, expected)
        tries = row.tries if command.writes else 3
        if server.seen or not 1 <= len(server.tunnels) <= tries:
            self.wrong.append(f"{row.name}, {command.name}: {len(server.tunnels)} tunnels, {server.seen}")
        if any(KEY.encode() in line for head in server.tunnels for line in head):
            self.wrong.append(f"{row.name}, {command.name}: the key went to the proxy")

    def run_case_in_process(self, row: Row, command: Command, application: Application, *, expected: int) -> None:
        """The same with a misbehaving application in the sandbox's place."""
        application.prepare(row, command)
        result = self.run("--sandbox", *command.line, "--json")
        self.check(row, command, result, expected)
        self._check_writes(row, command, application.writes, expected)

    def finish(self, *options: str) -> None:
        """Compare the journal with the expected states, and raise what was wrong."""
        listed = self.run(*options, "journal", "list", "--limit", "10000", "--json")
        states = [entry["state"].replace("unconfirmed", "done") for entry in reversed(listed.json)]
        if states != self.expected_journal:
            self.wrong.append(f"the journal says {states}, right is {self.expected_journal}")
        assert not self.wrong, "\n".join(self.wrong)

    def make_server(self, row: Row, command: Command, *, tunnel: bool) -> MisbehavingServer:
        return MisbehavingServer(
            row.misbehave,
            command.right,
            spares=command.reads_first if row.on_arrival and not row.https else 0,
            on_arrival=row.on_arrival,
            spares_readings=command.writes,
            tunnel=self.tls if tunnel else None,
            elsewhere=self.other_server.base_url,
        )

    def run_against(
        self, server: MisbehavingServer, row: Row, command: Command, *, tunnel: bool, timeout: str = "5"
    ) -> Result:
        url = f"{'https' if row.https else 'http'}://127.0.0.1:{server.port}"
        environ = {"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY, "ESCROWCTL_CA_BUNDLE": str(self.bundle)}
        if tunnel:
            environ |= {"ESCROWCTL_BASE_URL": f"https://{HOST}", "HTTPS_PROXY": f"http://127.0.0.1:{server.port}"}
        return self.run(
            *command.line,
            "--timeout",
            timeout,
            "--json",
            environ=environ,
            monotonic=lambda: time.monotonic() + server.skew,
        )

    def check(self, row: Row, command: Command, result: Result, expected: int) -> None:
        right = right_document(row, command) if expected == 0 else None
        problems = [*faults_of(result, expected, writes=command.writes, right=right)]
        self.wrong += [f"{row.name}, {command.name}: {problem}" for problem in problems]
        # What reads first and cannot read never comes to a write, and so to no entry.
        if command.writes and not (expected == NEVER_SENT[0] and command.reads_first):
            self.expected_journal.append(OUTCOMES[expected])

    def _check_writes(self, row: Row, command: Command, writes: int, expected: int) -> None:
        least, most = (0, 0)
        if command.writes:
            least, most = (1, row.tries) if expected != NEVER_SENT[0] else (0, row.tries)
        if not least <= writes <= most:
            self.wrong.append(f"{row.name}, {command.name}: {writes} writes, {least} to {most} were right")


def right_document(row: Row, command: Command) -> object:
    """Return what a command that ends well against a row must print with --json: by hand, from what the row sends."""
    document, status = document_of(row, command.right), int(row.what.status[:3]) if isinstance(row.what, Reply) else 200
    if command.name == "release":
        # The readings before and after are answered well, and no word for released is known.
        known = {"status_before": "held", "status_after": "held", "verified": None}
        return {
            "id": command.line[2],
            "http_status": status,
            "reply": None if document is NO_REPLY else document,
            **known,
        }
    if command.name == "webhook" and document is NO_REPLY:
        return {"id": None}
    if command.name == "create" and document is NO_REPLY:
        # Its Location alone names it.
        return {"id": "tx_made"}
    if command.name == "update" and document is NO_REPLY:
        return json.loads(record(command.line[2]))
    return document


NO_REPLY = object()


def document_of(row: Row, right: bytes) -> object:
    """Return the document in a row's reply that is good enough; NO_REPLY where it has no body."""
    if isinstance(row.what, Reply) and row.what.body == b"":
        return NO_REPLY
    if row.ends is NO_BODY:
        return NO_REPLY
    body = row.what.body if isinstance(row.what, Reply) and isinstance(row.what.body, bytes) else right
    return json.loads(body)


def faults_of(result: Result, expected: int, *, writes: bool, right: object = None) -> Iterator[str]:
    """Yield what is wrong with how a command ended; `right` is the document to print where it ends well."""
    text = result.out + result.err
    if result.code != expected:
        yield f"exit {result.code}, right is {expected}: {result.err.strip()[-300:]}"
        return
    if "Traceback" in text or '  File "' in text:
        yield f"a traceback: {text}"
    if KEY in text:
        yield "it shows the key"
    if expected == 0:
        if json.loads(result.out) != right:
            yield f"it prints {result.out}, right is {right}"
        return
    # What `tx get` reads is shown, even if it is not the escrow (16).
    if result.out and (writes or expected != 16):
        yield f"it failed, and stdout is not empty: {result.out}"
    error = result.error
    if error["exit_code"] != expected or (writes and error["outcome"] != OUTCOMES[expected]):
        yield f"the error contradicts the exit code: {error}"
