"""`webhook listen` in this process: which events it takes, stores and shows, and how it registers itself."""

import hashlib
import hmac
import json
import os
import stat
from functools import partial
from pathlib import Path

import pytest
from conftest import Result, Run
from e2e.script import Program
from webhook_sender import KEY, SECRET, body_of, headers_of, post, send
from webhooks.listener import wait_until
from wire_server import by_method

from cli.conftest import Profile
from cli.events import Application, Listen, lines_of, rows_of
from cli.replies import json_reply

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options

BROWSER = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"}


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


def test_repeated_event_is_counted_and_stored_once(listen: Listen, home: Path) -> None:
    result = listen(lambda port: [send(port, number) for number in (1, 2, 1)], "--json")

    assert [(line["id"], line["arrivals"]) for line in lines_of(result)] == [("msg_1", 1), ("msg_2", 1), ("msg_1", 2)]
    assert (home / "cache" / "complete" / "@default" / "event").read_text() == "msg_1\nmsg_2\n"


def test_last_line_counts_what_was_received(listen: Listen, target: str, application: Application) -> None:
    def send_three(port: int) -> None:
        for number in (1, 2, 1):
            send(port, number)
        wait_until(lambda: len(application.seen) == 2)

    result = listen(send_three, "--forward-to", target)

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
