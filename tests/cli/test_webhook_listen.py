"""`webhook listen` and `webhook replay`, in this process: a real receiver, a real application, real sockets."""

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Result, Run, Serve
from e2e.script import Program
from webhook_sender import KEY, OTHER_SECRET, SECRET, body_of, headers_of, post, send
from wire_server import Behave, Seen, WireServer, answering, by_method, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import json_reply
from cli.test_folders import give_away

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options

SECONDS = 20.0
BROWSER = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"}
Listen = Callable[..., Result]


@dataclass
class Application:
    """A web application that answers with the statuses in turn, and with the last one from then on."""

    statuses: list[int] = field(default_factory=lambda: [200])
    seen: list[Seen] = field(default_factory=list)

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        self.seen.append(seen)
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        connection.sendall(http_reply(f"{status} Said", b""))

    @property
    def ids(self) -> list[str | None]:
        return [seen.header("webhook-id") for seen in self.seen]


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def target(application: Application, serve: Serve) -> str:
    return f"{serve(application).base_url}/hooks?a=1"


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


@pytest.fixture
def listen(run: Run, tmp_path: Path) -> Iterator[Listen]:
    """Listen, do something with the port in another thread, and stop by a signal."""
    failures: list[Exception] = []

    def listen_there(act: Callable[[int], object], *words: str, number: int = signal.SIGINT, **given: Any) -> Result:
        ready, ended = tmp_path / "ready.json", threading.Event()

        def act_when_ready() -> None:
            while not ready.exists() and not ended.is_set():
                time.sleep(0.005)
            try:
                if ready.exists():
                    act(int(json.loads(ready.read_text())["url"].rpartition(":")[2]))
            except Exception as error:  # noqa: BLE001 - it is raised again in the test's own thread
                failures.append(error)
            finally:
                # It is gone when the listener has ended by itself.
                if ready.exists():
                    os.kill(os.getpid(), number)

        thread = threading.Thread(target=act_when_ready)
        thread.start()
        given.setdefault("monotonic", lambda: 0.0)
        given["environ"] = {"ESCROWCTL_WEBHOOK_SECRET": SECRET} | given.get("environ", {})
        try:
            return run("webhook", "listen", "--port", "0", "--ready-file", str(ready), *words, **given)
        finally:
            ended.set()
            thread.join()

    yield listen_there
    assert failures == []


def lines_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.fixture
def spool(home: Path) -> Path:
    return home / "state" / "webhooks.db"


def rows_of(spool: Path, statement: str = "SELECT * FROM events") -> list[tuple[Any, ...]]:
    """Execute a statement in the file of events, and return its rows."""
    with contextlib.closing(sqlite3.connect(spool)) as database, database:
        return database.execute(statement).fetchall()


def test_event_is_stored_and_shown_before_the_sender_gets_200(listen: Listen, spool: Path) -> None:
    answered: list[tuple[int, int]] = []

    result = listen(lambda port: answered.append((send(port, 1), len(rows_of(spool)))), "--json")

    assert (result.code, answered) == (130, [(200, 1)])
    (line,) = lines_of(result)
    assert line | {"at": ""} == {
        "at": "",
        "id": "msg_1",
        "type": "transaction.released",
        "resource": "tx_1",
        "status": "released",
        "verified": True,
        "arrivals": 1,
        "sent_id": "msg_1",
        "forward": None,
    }
    assert stat.filemode(spool.stat().st_mode) == "-rw-------"
    assert rows_of(spool, "SELECT body FROM events") == [(body_of(1),)]


@pytest.mark.slow
def test_event_that_cannot_be_stored_is_not_accepted(
    listen: Listen, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.webhooks.spool._BUSY_SECONDS", 0.05)
    statuses: list[int] = []

    def act(port: int) -> None:
        with contextlib.closing(sqlite3.connect(spool)) as database:
            database.execute("BEGIN IMMEDIATE")
            with pytest.raises(http.client.RemoteDisconnected):
                send(port, 1)
            database.rollback()
        statuses.append(send(port, 1))

    result = listen(act, "--json")

    assert (statuses, [line["arrivals"] for line in lines_of(result)]) == ([200], [1])
    assert "could not be stored" in result.err


def test_repeated_event_is_counted_and_stored_once(listen: Listen, home: Path) -> None:
    result = listen(lambda port: [send(port, number) for number in (1, 2, 1)], "--json")

    assert [(line["id"], line["arrivals"]) for line in lines_of(result)] == [("msg_1", 1), ("msg_2", 1), ("msg_1", 2)]
    offered_at_tab = home / "cache" / "complete" / "@default" / "event"
    assert offered_at_tab.read_text() == "msg_1\nmsg_2\n"


def test_last_line_counts_what_was_received(listen: Listen, target: str) -> None:
    result = listen(lambda port: [send(port, number) for number in (1, 2, 1)], "--forward-to", target)

    assert "3 received and stored, 2 forwarded, 1 repeated" in result.err.splitlines()[-1]


def test_requests_that_are_no_event_are_refused_and_not_stored(listen: Listen) -> None:
    body = body_of(1)
    statuses: list[int] = []
    signed = headers_of("msg_1", body)
    attempts: list[tuple[int, bytes, dict[str, str], str]] = [
        (403, body, signed | BROWSER, "POST"),
        (403, body, signed | {"Sec-Fetch-Site": "cross-site"}, "POST"),
        (421, body, signed | {"Host": "evil.example"}, "POST"),
        (421, body, signed | {"Host": "127.0.0.1.evil.example"}, "POST"),
        (405, b"", {}, "GET"),
        (405, b"", BROWSER, "OPTIONS"),
        (413, b" " * (1024 * 1024 + 1), signed, "POST"),
        (401, body, headers_of("msg_1", body, key=KEY[::-1]), "POST"),
        (401, body, {"webhook-id": "msg_1"}, "POST"),
        (401, body, {"webhook-id": "msg_1", "webhook-signature": "v1"}, "POST"),
    ]

    def act(port: int) -> None:
        statuses.extend(post(port, sent, headers, method=method) for _, sent, headers, method in attempts)

    result = listen(act)

    assert (statuses, result.out) == ([status for status, *_ in attempts], "")
    refusals = [line.split()[3] for line in result.err.splitlines() if line.startswith("warning: refused")]
    assert list(dict.fromkeys(refusals)) == ["403", "421", "405", "413", "401"]
    assert f"{len(attempts)} refused" in result.err


def test_host_of_the_public_url_is_accepted(listen: Listen) -> None:
    body = body_of(1)
    statuses: list[int] = []

    def act(port: int) -> None:
        hosts = ("Hooks.Example.net", "hooks.example.net:443", "example.net")
        statuses.extend(post(port, body, headers_of("msg_1", body) | {"Host": host}) for host in hosts)

    listen(act, "--url", "https://hooks.example.net/escrow")

    assert statuses == [200, 200, 421]


def test_unsigned_event_is_stored_and_forwarded_only_on_request(
    listen: Listen, application: Application, target: str
) -> None:
    def act(port: int, *, forwarded: int) -> None:
        post(port, body_of(1), {"webhook-id": "msg_1"})
        post(port, body_of(2), {})
        send(port, 3)
        wait_until(lambda: len(application.ids) == forwarded)

    careful = listen(partial(act, forwarded=1), "--forward-to", target, "--json")
    forwarded = list(application.ids)
    asked = listen(partial(act, forwarded=3), "--forward-to", target, "--unverified", "--json")

    assert [(line["id"], line["verified"]) for line in lines_of(careful)] == [("msg_3", True)]
    assert forwarded == ["msg_3"]
    # What arrives and what is forwarded is shown in any order.
    shown = {line["id"]: (line["sent_id"], line["verified"], line["forward"] is None) for line in lines_of(asked)}
    assert (application.ids[1:], asked.code) == (["msg_1", None], 130)
    assert shown == {"msg_1": ("msg_1", False, False), "e3": (None, False, False), "msg_3": ("msg_3", True, True)}


TEXT_SECRET = "a_secret_of_text"
HMAC = "webhook.scheme = 'hmac-sha256'\nwebhook.signature_header = 'X-Signature'"


def test_signed_body_under_other_ids_hides_no_event(
    listen: Listen, profile: Profile, application: Application, target: str
) -> None:
    profile(HMAC)
    sent = [(f"evt_{number}", body_of(1)) for number in range(1, 5)] + [("evt_3", body_of(3))]
    statuses: list[int] = []

    def act(port: int) -> None:
        for event_id, body in sent:
            signature = hmac.new(TEXT_SECRET.encode(), body, hashlib.sha256).hexdigest()
            statuses.append(post(port, body, {"webhook-id": event_id, "X-Signature": signature}))
        wait_until(lambda: len(application.seen) >= 2)

    result = listen(act, "--forward-to", target, "--json", environ={"ESCROWCTL_WEBHOOK_SECRET": TEXT_SECRET})

    assert statuses == [200] * 5
    assert [seen.body for seen in application.seen] == [body_of(1), body_of(3)]
    repeated = [(line["id"], line["arrivals"]) for line in lines_of(result) if line["forward"] is None]
    assert repeated == [("evt_1", count) for count in (2, 3, 4)]


@pytest.fixture
def shared_id(listen: Listen, application: Application, target: str) -> Result:
    """What a listener shows of two bodies under one id, the second one sent twice."""

    def act(port: int) -> None:
        for number in (1, 2, 2):
            post(port, body_of(number), headers_of("msg_1", body_of(number)))
        wait_until(lambda: len(application.seen) >= 2)

    return listen(act, "--forward-to", target, "--json")


def test_another_body_under_a_used_id_is_an_event(shared_id: Result, application: Application) -> None:
    lines = lines_of(shared_id)
    second = [line for line in lines if line["resource"] == "tx_2"]

    assert [seen.body for seen in application.seen] == [body_of(1), body_of(2)]
    assert {(line["id"], line["sent_id"]) for line in second} == {("e2", "msg_1")}
    # Forwarded once, and repeated once.
    assert (len(lines), len(second), max(line["arrivals"] for line in second)) == (3, 2, 2)


def test_id_of_two_bodies_is_refused_and_each_has_a_name(
    shared_id: Result, run: Run, application: Application, target: str
) -> None:
    environ = {"ESCROWCTL_WEBHOOK_SECRET": SECRET}
    replay = ("webhook", "replay", "--forward-to", target)
    refused = run(*replay, "msg_1", "--json"), run("webhook", "verify", "--event", "msg_1", "--json", environ=environ)
    verified = [run("webhook", "verify", "--event", name, "--json", environ=environ).json for name in ("e1", "e2")]
    replayed = run(*replay, "e2")

    assert [(result.code, result.error["events"]) for result in refused] == [(2, ["e1", "e2"])] * 2
    assert [(one["id"], one["resource"]) for one in verified] == [("e1", "tx_1"), ("e2", "tx_2")]
    assert (replayed.out.split("\t")[1], [seen.body for seen in application.seen[2:]]) == ("e2", [body_of(2)])


BOUNDS = pytest.mark.parametrize(("name", "value"), [("MAX_UNVERIFIED", 3), ("MAX_UNVERIFIED_BYTES", 2000)])
"""Each leaves room for three events of `unsigned`."""


def unsigned(port: int, number: int, *, size: int = 400) -> int:
    return post(port, f"{number}".encode().rjust(size), {"webhook-id": f"msg_{number}"})


@BOUNDS
def test_unverified_event_without_room_is_not_acknowledged(
    name: str, value: int, listen: Listen, run: Run, target: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"escrowctl.webhooks.spool.{name}", value)
    statuses: list[int] = []

    def listen_to(*numbers: int) -> Result:
        statuses.clear()
        without = ("ESCROWCTL_WEBHOOK_SECRET",)
        return listen(lambda port: statuses.extend(unsigned(port, one) for one in numbers), "--json", without=without)

    result = listen_to(1, 2, 3, 4, 1, 5)

    assert statuses == [200, 200, 200, 503, 200, 503]
    assert [line["id"] for line in lines_of(result)] == ["msg_1", "msg_2", "msg_3", "msg_1"]
    assert [event[0] for event in rows_of(spool)] == [1, 2, 3]
    assert run("webhook", "replay", "--since", "30d", "--unverified", "--forward-to", target).code == 0
    listen_to(4)
    assert statuses == [200]


@BOUNDS
def test_unverified_events_that_were_forwarded_make_room(
    name: str,
    value: int,
    listen: Listen,
    spool: Path,
    application: Application,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"escrowctl.webhooks.spool.{name}", value)
    statuses: list[int] = []

    def act(port: int) -> None:
        send(port, 0)
        statuses.extend(unsigned(port, number) for number in (1, 2, 3))
        wait_until(lambda: len(rows_of(spool, "SELECT 1 FROM forwards WHERE state = 'done'")) == 4)
        statuses.extend(unsigned(port, number) for number in (4, 5))
        wait_until(lambda: len(application.seen) == 6)

    listen(act, "--forward-to", target, "--unverified")

    assert statuses == [200] * 5
    assert application.ids == [f"msg_{number}" for number in range(6)]
    # The first one is verified: it has no part in the bound.
    assert [event[0] for event in rows_of(spool)] == [1, 4, 5, 6]


@pytest.mark.slow
def test_unsigned_event_does_not_take_the_place_of_a_signed_one(listen: Listen, run: Run) -> None:
    listen(lambda port: (post(port, b"{}", {"webhook-id": "msg_1"}), send(port, 1)), "--unverified")

    result = run("webhook", "verify", "--event", "msg_1", environ={"ESCROWCTL_WEBHOOK_SECRET": SECRET})

    assert (result.code, "tx_1" in result.out) == (0, True)


def test_event_without_any_known_secret_is_stored_and_not_forwarded(
    listen: Listen, application: Application, target: str
) -> None:
    result = listen(lambda port: send(port, 1), "--forward-to", target, without=("ESCROWCTL_WEBHOOK_SECRET",))

    assert (result.out.rstrip().split("\t")[-2:], application.seen) == (["UNVERIFIED", "not forwarded"], [])
    assert "every event will be UNVERIFIED" in result.err


def test_application_gets_the_original_bytes_and_headers(listen: Listen, application: Application, target: str) -> None:
    body = b'{ "type":"a",\n "data": {"id": "tx_\\u00e9"} }  '
    headers = headers_of("msg_1", body) | {"Content-Type": "application/json; x=1", "X-Shop": "a, b"}

    def act(port: int) -> None:
        post(port, body, headers, path="/some/where?else")
        wait_until(lambda: application.seen)

    result = listen(act, "--forward-to", target, "--json")

    (seen,) = application.seen
    assert (result.code, seen.method, seen.target, seen.body) == (130, "POST", "/hooks?a=1", body)
    assert {name: seen.header(name) for name in headers} == headers
    assert (seen.header("Host") or "").startswith("127.0.0.1:")
    assert [line["forward"]["http_status"] for line in lines_of(result)] == [200]


def test_failed_attempt_is_repeated_before_the_next_event(
    listen: Listen, application: Application, target: str
) -> None:
    application.statuses = [500, 302, 200]

    def act(port: int) -> None:
        for number in (1, 2):
            send(port, number)
        wait_until(lambda: len(application.seen) == 4)

    result = listen(act, "--forward-to", target, "--json", sleep=lambda seconds: time.sleep(seconds / 1000))

    assert application.ids == ["msg_1", "msg_1", "msg_1", "msg_2"]
    shown = [(line["id"], line["forward"]["http_status"], line["forward"]["attempt"]) for line in lines_of(result)]
    assert (result.code, shown) == (130, [("msg_1", 500, 1), ("msg_1", 302, 2), ("msg_1", 200, 3), ("msg_2", 200, 1)])


@pytest.mark.slow
def test_event_that_is_always_refused_is_given_up_after_ten_attempts(
    listen: Listen, run: Run, application: Application, target: str
) -> None:
    application.statuses = [*[400] * 10, 200]

    def act(port: int) -> None:
        for number in (1, 2):
            send(port, number)
        wait_until(lambda: "msg_2" in application.ids)

    result = listen(act, "--forward-to", target, sleep=lambda seconds: time.sleep(seconds / 1000))
    again = run("webhook", "replay", "--failed", "--forward-to", target, "-q")
    never = run("webhook", "replay", "--failed", "--forward-to", target, "-q")

    assert application.ids == [*["msg_1"] * 10, "msg_2", "msg_1"]
    assert (result.code, again.code, again.out, never.out) == (14, 0, "msg_1\n", "")


def test_events_that_wait_are_forwarded_by_the_next_listener(listen: Listen, application: Application) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as reserved:
        port_of_application = reserved.getsockname()[1]
    target = f"http://localhost:{port_of_application}/"

    first = listen(lambda port: [send(port, number) for number in (1, 2)], "--forward-to", target, "--json")
    with contextlib.closing(WireServer(application, port=port_of_application)):
        second = listen(lambda _port: wait_until(lambda: len(application.seen) == 2), "--forward-to", target)

    assert (first.code, first.error["code"], first.error["left"]) == (14, "not_forwarded", 2)
    assert (second.code, application.ids) == (130, ["msg_1", "msg_2"])


@pytest.mark.slow
def test_two_listeners_do_not_forward_to_one_application(listen: Listen, target: str) -> None:
    seconds: list[Result] = []
    program = Program(dict(os.environ) | {"ESCROWCTL_WEBHOOK_SECRET": SECRET})
    line = ("webhook", "listen", "--port", "0", "--forward-to", target, "--json")

    listen(lambda _port: seconds.append(program.run(*line)), "--forward-to", target)

    assert [(result.code, result.error["code"]) for result in seconds] == [(7, "busy")]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--forward-to", "https://127.0.0.1/x"), "bad_value"),
        (("--forward-to", "http://169.254.169.254/x"), "bad_value"),
        (("--forward-to", "http://127.0.0.1.evil.example/x"), "bad_value"),
        (("--forward-to", "http://u:p@127.0.0.1/x"), "bad_value"),
        (("--forward-to", "http://127.0.0.1:0/x"), "bad_value"),
        (("--url", "hooks.example.net"), "bad_value"),
        (("--secret-file", "/no/such/file"), "bad_config"),
        (("--ready-file", "/etc/hostname"), "bad_value"),
        (("--register", "--base-url", "https://escrow.example.com"), "key_missing"),
    ],
)
def test_line_of_listen_that_cannot_be_meant_is_refused(options: tuple[str, ...], code: str, run: Run) -> None:
    assert run("webhook", "listen", "--port", "0", *options, "--json").error["code"] == code


LISTED = b'{"data":[{"id":"wh_1","url":"https://other.example/x"},{"id":"wh_3","url":"%s","status":"%s"}]}'
MADE = b'{"id":"wh_9","url":"https://hooks.example.net/x","secret":"%s"}' % SECRET.encode()
PUBLIC = ("--register", "--url", "https://hooks.example.net/x")


def test_endpoint_with_the_url_is_used_again(listen: Listen, profile: Profile) -> None:
    server = profile("", behave=json_reply(LISTED % (b"https://hooks.example.net/x", b"disabled")))

    result = listen(lambda _port: None, *PUBLIC)

    assert (result.code, server.writes) == (130, [])
    assert "wh_3 as disabled" in result.err


def test_endpoint_is_registered_after_a_question_and_its_secret_used(listen: Listen, profile: Profile) -> None:
    register = by_method(
        GET=json_reply(LISTED % (b"https://third.example", b"enabled")), POST=json_reply(MADE, "201 Created")
    )
    server = profile("mode = 'live'", behave=register)
    without = ("ESCROWCTL_WEBHOOK_SECRET", "ESCROWCTL_JOURNAL_ID")

    asked = listen(lambda _port: None, *PUBLIC, without=without, stdin="no\n", terminal=True)
    silent = listen(lambda _port: None, *PUBLIC, without=without)
    before = len(server.writes)
    agreed = listen(lambda port: send(port, 1), *PUBLIC, "--json", "--yes", without=without)

    assert (asked.code, silent.code, before) == (3, 3, 0)
    assert [json.loads(seen.body) for seen in server.writes] == [{"url": "https://hooks.example.net/x"}]
    assert [line["verified"] for line in lines_of(agreed)] == [True]
    assert SECRET not in agreed.out + agreed.err


@pytest.mark.slow
def test_sandbox_registers_the_listener_and_prints_its_secret(listen: Listen, run: Run) -> None:
    while_open: list[int] = []

    def act(port: int) -> None:
        while_open.append(Program(dict(os.environ)).run("sandbox", "reset", "--yes").code)

    first = listen(lambda _port: None, "--sandbox", "--register", "--json")
    secret = run("--sandbox", "webhook", "listen", "--print-secret")
    listen(act, "--sandbox")

    assert (first.code, secret.code, while_open) == (130, 0, [0])
    assert secret.out.startswith("whsec_")
    assert "--print-secret" in first.err


@pytest.fixture
def stored(listen: Listen) -> None:
    """Three events: msg_1 and msg_3, and msg_2 without a signature."""
    listen(lambda port: (send(port, 1), post(port, body_of(2), {"webhook-id": "msg_2"}), send(port, 3)), "--unverified")


def test_replay_sends_what_was_received(stored: None, run: Run, application: Application, target: str) -> None:
    result = run("webhook", "replay", "msg_3", "msg_1", "--forward-to", target, "--json")

    assert (result.code, application.ids) == (0, ["msg_3", "msg_1"])
    assert [seen.body for seen in application.seen] == [body_of(3), body_of(1)]
    assert [line["forward"][0]["http_status"] for line in lines_of(result)] == [200, 200]


def test_replay_leaves_unverified_events_out_unless_asked(
    stored: None, run: Run, application: Application, target: str
) -> None:
    replay = ("webhook", "replay", "--forward-to", target)
    named = run(*replay, "msg_1", "msg_2", "--json")
    assert (named.code, named.error["code"], application.seen) == (14, "bad_signature", [])

    careful = run(*replay, "--since", "1h")
    asked = run(*replay, "--since", "1h", "--unverified")

    assert (careful.code, "left out: 1" in careful.err, asked.code) == (0, True, 0)
    assert application.ids == ["msg_1", "msg_3", "msg_1", "msg_2", "msg_3"]


def test_duplicate_shows_both_answers(stored: None, run: Run, application: Application, target: str) -> None:
    application.statuses = [200, 409]

    result = run("webhook", "replay", "msg_1", "--duplicate", "--forward-to", target)

    assert (result.code, application.ids) == (14, ["msg_1", "msg_1"])
    assert result.out.endswith("\tsent twice: 200, 409\n")


def test_sign_renews_the_timestamp_and_nothing_that_is_stored(
    stored: None, run: Run, application: Application, target: str, spool: Path
) -> None:
    environ = {"ESCROWCTL_WEBHOOK_SECRET": f"{OTHER_SECRET} {SECRET}"}
    before = rows_of(spool)
    line = ("webhook", "replay", "msg_1", "msg_2", "--unverified", "--sign", "--forward-to", target)

    result = run(*line, environ=environ, now=lambda: LATER)

    signed, unsigned = application.seen
    assert result.code == 0
    renewed = headers_of("msg_1", body_of(1), sent_at=int(LATER.timestamp()))
    assert {name: signed.header(name) for name in renewed} == renewed
    assert unsigned.header("webhook-signature") is None
    assert rows_of(spool) == before


LATER = datetime(2030, 1, 1, tzinfo=UTC)


def drip(_seen: Seen, connection: socket.socket) -> None:
    """Send a byte at a time: each read succeeds, and the answer never ends."""
    with contextlib.suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        (hang_up, "no valid answer"),
        (drip, "no answer within 0.2 s"),
        (answering(http_reply("400 Said")), "400"),
        (None, "no connection"),
    ],
)
def test_application_that_does_not_accept_is_reported(
    behave: Behave | None, said: str, stored: None, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.webhooks.forward.SECONDS", 0.2)
    target = serve(behave).base_url if behave else "http://127.0.0.1:9/"

    result = run("webhook", "replay", "msg_1", "--forward-to", target, now=lambda: LATER)

    assert (result.code, result.out.split("\t")[-1].startswith(said)) == (14, True)
    # What it refused by its age may be accepted under another signature.
    assert ("--sign" in result.err) == (said == "400")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--forward-to", "http://127.0.0.1:9/"), 2),
        (("msg_1", "--failed", "--forward-to", "http://127.0.0.1:9/"), 2),
        (("--since", "yesterday", "--forward-to", "http://127.0.0.1:9/"), 2),
        (("msg_404", "--forward-to", "http://127.0.0.1:9/"), 6),
        (("msg_1", "--sign", "--forward-to", "http://127.0.0.1:9/"), 4),
    ],
)
def test_line_of_replay_that_cannot_be_meant_is_refused(words: tuple[str, ...], code: int, run: Run) -> None:
    assert run("webhook", "replay", *words).code == code


@pytest.mark.slow
def test_old_events_are_removed_unless_they_are_to_be_forwarded(
    listen: Listen, application: Application, target: str, spool: Path
) -> None:
    def send_all(port: int) -> None:
        for number in (1, 2, 3):
            send(port, number)
        wait_until(lambda: len(application.seen) == 3)

    def left(days: int) -> list[int]:
        listen(lambda _port: None, now=lambda: datetime.now(UTC) + timedelta(days=days))
        return [event[0] for event in rows_of(spool)]

    listen(send_all, "--forward-to", target)
    listen(lambda port: send(port, 4))
    rows_of(spool, "UPDATE forwards SET state = iif(event = 2, 'waiting', 'failed') WHERE event IN (2, 3)")

    assert [left(29), left(31)] == [[1, 2, 3, 4], [2, 3]]
    # A number is never given again: the next event would pass for one that was forwarded.
    listen(lambda port: send(port, 5))
    assert left(0) == [2, 3, 5]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["older", "newer", "open to others", "no database", "page", "owner", "link"])
def test_file_of_events_that_cannot_be_used_is_reported(
    how: str, listen: Listen, run: Run, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(lambda _port: None)
    match how:
        case "page":
            content = spool.read_bytes()
            spool.write_bytes(content[:100].ljust(len(content), b"\xff"))
        case "owner":
            give_away(spool, monkeypatch)
        case "link":
            spool.unlink()
            spool.symlink_to("nowhere")
        case "open to others":
            spool.chmod(0o644)
        case "no database":
            spool.write_bytes(b"no database" * 1000)
        case _:
            rows_of(spool, f"PRAGMA user_version = {1 if how == 'older' else 99}")

    result = run("webhook", "listen", "--port", "0", "--json")

    assert (result.code, result.error["code"]) == (17, "state_unusable")


DAMAGE = {
    "headers that are no pairs": "UPDATE events SET headers = '[1]'",
    "headers without an end": "UPDATE events SET headers = replace(hex(zeroblob(50000)), '0', '[')",
    "headers that no request has": 'UPDATE events SET headers = \'[["webhook-id", "\u2022"]]\'',
    "a time that is none": "UPDATE events SET received_at = 'now'",
}
NOWHERE = ("--forward-to", "http://127.0.0.1:9/")


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_event_is_reported_by_each_command(
    change: str, listen: Listen, run: Run, spool: Path, tmp_path: Path
) -> None:
    environ = {"ESCROWCTL_WEBHOOK_SECRET": SECRET}
    listen(lambda port: send(port, 1), *NOWHERE)
    rows_of(spool, change)

    results = [
        run("webhook", "verify", "--event", "msg_1", "--json", environ=environ),
        run("webhook", "replay", "msg_1", *NOWHERE, "--json"),
        listen(lambda _port: wait_until(lambda: not (tmp_path / "ready.json").exists()), *NOWHERE, "--json"),
    ]

    assert [(result.code, result.error["code"]) for result in results] == [(17, "state_unusable")] * 3


def test_numbers_that_are_too_large_are_damage(listen: Listen, spool: Path, tmp_path: Path) -> None:
    statuses: list[int] = []
    listen(lambda port: send(port, 1), *NOWHERE)
    rows_of(spool, "UPDATE forwards SET attempts = 9223372036854775807")
    rows_of(spool, "UPDATE arrivals SET count = 9223372036854775807")

    counted = listen(lambda port: statuses.append(send(port, 1)))
    tried = listen(lambda _port: wait_until(lambda: not (tmp_path / "ready.json").exists()), *NOWHERE, "--json")

    assert (statuses, counted.code) == ([503], 130)
    assert (tried.code, tried.error["code"]) == (17, "state_unusable")
