"""Entries of the journal prevent duplicate writes; each server counts the requests."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import Behave, Seen, WireServer, by_method, hang_up, http_reply, say_nothing

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, holding, in_turn, json_reply, writes_meet
from escrowctl.output.view import View

ABOUT_IT = (*CREATE, "--reason", "order 8841")


def test_identical_create_is_refused_while_the_first_is_unknown(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))

    first, second = run(*ABOUT_IT), run(*ABOUT_IT, "--json")

    assert (first.code, second.code, second.out) == (12, 12, "")
    assert second.error["code"] == "earlier_unknown"
    assert second.error["entry"] == "j1"
    assert len(server.writes) == 1
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize("amount", ["100.00", "100.0"])
def test_an_equal_amount_in_another_spelling_is_the_same_create(amount: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(hang_up)

    run(*CREATE)
    again = run("tx", "create", "--amount", amount, "--currency", "USD")

    assert (again.code, len(server.writes)) == (12, 1)


def test_another_amount_currency_or_reference_is_another_create(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(hang_up, holding()))

    run(*CREATE, "--reference", "one")
    others = [
        run("tx", "create", "--amount", "101", "--currency", "USD"),
        run("tx", "create", "--amount", "100", "--currency", "EUR"),
        run(*CREATE, "--reference", "other"),
        run(*CREATE, "--data", '{"memo":"x"}'),
    ]

    assert [other.code for other in others] == [0, 0, 0, 0]
    assert len(server.writes) == 5


@pytest.mark.parametrize(
    ("first", "second"),
    [((), ("--reference", "order-1")), (("--reference", "order-1"), ())],
    ids=["first without", "first with"],
)
def test_unknown_create_typed_again_with_or_without_its_reference_is_refused(
    first: tuple[str, ...], second: tuple[str, ...], service_and_run: ServiceAndRun
) -> None:
    """A reference stays on this machine: the service would see the same request."""
    server, run = service_and_run(in_turn(hang_up, holding()))

    run(*CREATE, *first)
    refused = run(*CREATE, *second, "--json")
    allowed = run(*CREATE, *second, "--allow-duplicate", "j1")

    assert (refused.code, refused.error["entry"], allowed.code, len(server.writes)) == (12, "j1", 0, 2)
    assert "--allow-duplicate j1" in refused.error["hint"]


def test_create_is_sent_with_allow_duplicate_of_the_entry(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))

    run(*CREATE)
    missing, right = run(*CREATE, "--allow-duplicate", "j9", "--json"), run(*CREATE, "--allow-duplicate", "j1")

    assert (missing.code, right.code, len(server.writes)) == (2, 0, 2)
    assert "no entry j9" in missing.error["message"]
    assert journal() == [("create_transaction", "unknown"), ("create_transaction", "done")]


@pytest.mark.parametrize("amount", ["100", "7"], ids=["identical", "another amount"])
def test_reference_of_an_unknown_create_is_refused_with_allow_duplicate_too(
    service_and_run: ServiceAndRun, amount: str
) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))
    again = ("tx", "create", "--amount", amount, "--currency", "USD", "--reference", "A-1", "--json")
    assert run(*CREATE, "--reference", "A-1").code == 12

    refused, allowed = run(*again), run(*again, "--allow-duplicate", "j1")

    assert [result.code for result in (refused, allowed)] == [12, 12]
    assert {result.error["code"] for result in (refused, allowed)} == {"earlier_unknown"}
    assert ("--allow-duplicate" in str(refused.error["hint"]), len(server.writes)) == (False, 1)


def test_done_create_may_be_repeated_but_not_its_reference(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(holding())

    codes = [
        run(*CREATE).code,
        run(*CREATE).code,
        run(*CREATE, "--reference", "A-1").code,
        run(*CREATE, "--reference", "A-1").code,
        run("tx", "create", "--amount", "7", "--currency", "USD", "--reference", "A-1").code,
    ]

    assert codes == [0, 0, 0, 7, 7]
    assert len(server.writes) == 3


def test_writes_at_another_service_refuse_nothing_here(serve: Serve, run: Run) -> None:
    servers = [serve(service()), serve(service())]
    writes = [(*CREATE, "--reference", "A-1", "--idempotency-key", "k1"), RELEASE]

    codes = [
        run(*words, environ={"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}).code
        for server in servers
        for words in writes
    ]

    assert (codes, [len(server.writes) for server in servers]) == ([0] * 4, [2, 2])


def test_a_reference_whose_create_was_refused_is_free_again(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(json_reply(b"{}", "400 Bad Request"), json_reply(HELD)))

    codes = [run(*CREATE, "--reference", "A-1").code, run(*CREATE, "--reference", "A-1").code]

    assert (codes, len(server.writes)) == ([8, 0], 2)


def test_same_key_and_body_prints_the_stored_result(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))
    keyed = (*CREATE, "--idempotency-key", "order-1", "--json")

    first, second = run(*keyed), run(*keyed)

    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out
    assert '"code": "replayed"' in second.err
    assert len(server.writes) == 1
    assert server.writes[0].header("Idempotency-Key") == "order-1"


def test_the_same_key_with_another_body_is_a_conflict(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    run(*CREATE, "--idempotency-key", "order-1")
    other = run("tx", "create", "--amount", "7", "--currency", "USD", "--idempotency-key", "order-1", "--json")

    assert (other.code, other.error["code"], len(server.writes)) == (7, "key_reused", 1)


def test_key_of_another_reference_is_refused(profile: Profile, run: Run) -> None:
    """Its reference would be recorded nowhere, and a later create under it would be sent."""
    server = profile(behave=holding())
    keyed = (*CREATE, "--idempotency-key", "k-1")
    codes = [run(*keyed, *words).code for words in (("--reference", "r-1"), ("--reference", "r-1"), ())]
    other = run(*keyed, "--reference", "r-2", "--json")
    bare = (*CREATE, "--idempotency-key", "k-2")
    added = [run(*bare, *words).code for words in ((), ("--reference", "r-2"))]

    assert (codes, other.code, other.error["code"]) == ([0, 0, 0], 7, "key_reused")
    assert (added, len(server.writes)) == ([0, 7], 2)


def test_the_same_key_stays_unknown_while_its_create_is(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    codes = [run(*keyed).code, run(*keyed).code]

    assert (codes, len(server.writes)) == ([12, 12], 1)


@pytest.mark.parametrize("status", ["425 Too Early", "429 Too Many Requests"])
def test_throttled_create_is_not_repeated_under_its_key_by_default(
    status: str, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    """A proxy that sent it twice may have had the first one applied."""
    server, run = service_and_run(in_turn(json_reply(b"", status), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    first, second = run(*keyed), run(*keyed, "--json")

    assert (first.code, second.code, len(server.writes)) == (9, 9, 1)
    hint = second.error["hint"]
    assert "another --idempotency-key" in hint
    assert journal() == [("create_transaction", "refused")]


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_create_is_sent_again_after_its_api_key_was_refused(
    status: str, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(in_turn(json_reply(b"", status), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    refused = run(*keyed)
    again, repeated = (run(*keyed, environ={"ESCROWCTL_API_KEY": "sk_test_the_right_one"}) for _ in range(2))

    assert (refused.code in (4, 5), again.code, repeated.code) == (True, 0, 0)
    assert [seen.header("Idempotency-Key") for seen in server.writes] == ["order-1"] * 2
    assert journal() == [("create_transaction", "done")]


@pytest.mark.representative("401", "not sent")
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", ""], ids=["401", "403", "not sent"])
def test_resend_keeps_the_reference_of_its_create(status: str, serve: Serve, run: Run) -> None:
    """A create that lost it would let another one have it."""
    server = serve(in_turn(json_reply(b"", status), json_reply(HELD)) if status else json_reply(HELD))
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY, "ESCROWCTL_MODE": "test"}
    keyed = (*CREATE, "--idempotency-key", "order-1")
    if not status:
        server.close()

    first = run(*keyed, "--reference", "A-1", environ=environ)
    without = run(*keyed, environ=environ)

    assert (first.code in (4, 5, 11), without.code) == (True, 7)
    assert "repeat the command with --reference A-1" in without.err
    assert len(server.writes) == bool(status)


def test_resend_that_was_refused_leaves_an_unknown_create_unknown(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(b"", "401 Unauthorized"), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")
    resend = ("journal", "resolve", "j1", "--resend", "--yes", "--allow-unreadable", "--reason", "x")

    codes = [run(*keyed).code, run(*resend).code, run(*keyed).code]

    assert (codes, len(server.writes)) == ([12, 12, 12], 2)
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize("line", [CREATE, ("webhook", "create", "--url", "https://hooks.example.net/x")])
def test_conflict_to_a_create_with_a_fresh_key_is_unknown(
    service_and_run: ServiceAndRun, line: tuple[str, ...]
) -> None:
    server, run = service_and_run(json_reply(b"", "409 Conflict"))

    codes = [run(*line).code, run(*line).code]

    assert (codes, len(server.writes)) == ([12, 12], 1)


def test_a_conflict_on_a_later_attempt_proves_nothing(
    retrying_service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = retrying_service_and_run(in_turn(json_reply(b"", "429 Later"), json_reply(b"", "409 Conflict")))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    codes = [run(*keyed).code, run(*keyed).code]

    assert (codes, len(server.writes)) == ([12, 12], 2)
    assert journal() == [("create_transaction", "unknown")]


# Releasing


def service() -> Behave:
    """A service that keeps whether tx_1 is released."""
    state = {"record": HELD}

    def get(seen: Seen, connection: socket.socket) -> None:
        json_reply(state["record"])(seen, connection)

    def put(seen: Seen, connection: socket.socket) -> None:
        state["record"] = RELEASED
        get(seen, connection)

    return by_method(GET=get, POST=json_reply(HELD), PUT=put)


WithProfile = Callable[..., tuple[WireServer, Run]]
PROFILE = '[profiles.here]\nbase_url = "{url}"\napi_key_file = "key"\nstatus.released = ["Released"]\n{more}'


@pytest.fixture
def service_with_profile(serve: Serve, run: Run, write_config: Callable[[str], Path], home: Path) -> WithProfile:
    """Start a server behind the profile `here`, which knows the word for released."""

    def start(behave: Behave, more: str = "") -> tuple[WireServer, Run]:
        server = serve(behave)
        write_config(PROFILE.format(url=server.base_url, more=more))
        key = home / "key"
        key.write_text("sk_test_1\n")
        key.chmod(0o600)
        return server, lambda *words, **keywords: run("-p", "here", *words, **keywords)

    return start


def test_a_release_that_reads_back_as_released_is_verified(service_with_profile: WithProfile) -> None:
    server, run = service_with_profile(service())

    result = run(*RELEASE, "--json")

    assert (result.code, result.err) == (0, "")
    assert result.json["verified"] is True
    assert (result.json["status_before"], result.json["status_after"]) == ("held", "released")
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "GET"]


def test_a_release_known_as_done_is_refused_without_a_request(service_with_profile: WithProfile) -> None:
    server, run = service_with_profile(service())
    run(*RELEASE)
    before = len(server.seen)

    again, allowed = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (again.code, again.error["code"], again.error["entry"]) == (7, "already_done", "j1")
    assert (allowed.code, allowed.json["verified"]) == (0, True)
    assert len(server.writes) == 1
    assert len(server.seen) == before + 1, "only --skip-released read it again"


def test_the_same_key_again_prints_the_stored_release(service_with_profile: WithProfile) -> None:
    server, run = service_with_profile(service())
    keyed = (*RELEASE, "--idempotency-key", "release-1", "--json")

    first, second = run(*keyed), run(*keyed)
    other = run("tx", "release", "tx_2", "--yes", "--idempotency-key", "release-1")

    assert (first.code, second.code, other.code) == (0, 0, 7)
    assert (second.json["reply"], second.json["verified"]) == (first.json["reply"], True)
    assert '"code": "replayed"' in second.err
    assert len(server.writes) == 1


def test_release_of_a_released_escrow_is_refused_after_one_read(service_with_profile: WithProfile) -> None:
    server, run = service_with_profile(json_reply(RELEASED))

    codes = [run(*line).code for line in (RELEASE, (*RELEASE, "--skip-released"))]
    # No profile says so; but that word is no reason to send it.
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
    codes += [run(*line, environ=environ).code for line in (RELEASE, (*RELEASE, "--skip-released"))]

    assert (codes, server.writes) == ([7, 0] * 2, [])


def test_an_answered_unknown_that_reads_back_as_released_is_done(service_with_profile: WithProfile) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server, run = service_with_profile(writes_meet(json_reply(b"<html>", "502 Bad Gateway"), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.json["http_status"], result.json["verified"]) == (0, 502, True)
    history = run("journal", "show", "j1", "--json").json["history"]
    assert [event["state"] for event in history] == ["in_flight", "unknown", "done"]
    assert len(server.writes) == 1


def test_a_release_can_wait_until_it_reads_as_released(service_with_profile: WithProfile) -> None:
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    queued = json_reply(HELD.replace(b"held", b"PAYOUT_QUEUED"))
    reads = in_turn(json_reply(HELD), queued, json_reply(b"oops", "503 Busy"), json_reply(RELEASED))
    server, run = service_with_profile(writes_meet(json_reply(b"", "204 No Content"), reads=reads))
    clocks: dict[str, Any] = {"sleep": sleep, "monotonic": lambda: clock[0], "chance": lambda: 0.0}

    reached = run(*RELEASE, "--wait", "--json", **clocks)

    assert (reached.code, reached.json["status_after"], reached.json["verified"]) == (0, "released", True)
    # Two seconds to the next look, and half a second until the look that failed is tried again.
    assert (clock[0], len(server.writes)) == (2.5, 1)


def test_wait_ends_at_its_deadline_and_reports_the_accepted_release(service_with_profile: WithProfile) -> None:
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    server, run = service_with_profile(json_reply(HELD))
    clocks: dict[str, Any] = {"sleep": sleep, "monotonic": lambda: clock[0]}

    expired = run(*RELEASE, "--wait", "--deadline", "10s", "--json", **clocks)

    assert (expired.code, expired.out, expired.error["code"]) == (13, "", "wait_expired")
    assert (expired.error["outcome"], clock[0], len(server.writes)) == ("done", 10.0, 1)


def test_wait_without_a_released_status_is_refused(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    results = [run(*RELEASE, "--wait"), run(*RELEASE, "--wait", "--deadline", "soon")]

    assert ([result.code for result in results], server.seen) == ([2, 2], [])


def test_an_unknown_release_is_not_sent_again(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(writes_meet(say_nothing))

    codes = [run(*RELEASE, "--timeout", "0.3").code, run(*RELEASE).code, run(*RELEASE, "--skip-released").code]

    assert (codes, len(server.writes)) == ([12, 12, 12], 1)
    assert journal() == [("release_transaction", "unknown")]


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        (("--expect-amount", "100"), 0),
        (("--expect-amount", "100.00", "--expect-currency", "USD"), 0),
        (("--expect-amount", "100.01"), 3),
        (("--expect-currency", "EUR"), 3),
    ],
)
def test_expectations_compare_decimals_and_a_mismatch_sends_nothing(
    expect: tuple[str, ...], code: int, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*RELEASE, *expect)

    assert (result.code, len(server.writes)) == (code, 1 if code == 0 else 0)


@pytest.mark.parametrize("expect", [("--expect-amount", "5000"), ("--expect-currency", "EUR")], ids=str)
@pytest.mark.parametrize("line", [RELEASE, (*RELEASE, "--skip-released")], ids=["plain", "skip"])
def test_expectation_fails_on_an_escrow_that_reads_as_released(
    line: tuple[str, ...], expect: tuple[str, ...], service_with_profile: WithProfile
) -> None:
    server, run = service_with_profile(json_reply(RELEASED))

    result = run(*line, *expect, "--json")

    assert (result.code, result.error["code"], server.writes) == (3, "expectation_failed", [])


@pytest.mark.parametrize(("expect", "code"), [("100", 0), ("5000", 3)])
@pytest.mark.parametrize("option", ["--skip-released", "--idempotency-key=K1"])
def test_expectation_fails_on_an_escrow_released_from_here(
    option: str, expect: str, code: int, service_with_profile: WithProfile
) -> None:
    server, run = service_with_profile(service())
    assert run(*RELEASE, option).code == 0

    result = run(*RELEASE, option, "--expect-amount", expect, "--json")

    assert (result.code, len(server.writes)) == (code, 1)


def test_a_record_that_cannot_be_read_is_released_only_unread(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(GET=json_reply(b"<html>"), PUT=json_reply(b"", "204 No Content")))

    refused, unread = run(*RELEASE), run(*RELEASE, "--allow-unreadable", "--json")

    assert (refused.code, refused.out) == (10, "")
    assert "--allow-unreadable" in refused.err
    assert unread.code == 0
    assert unread.json == {
        "id": "tx_1",
        "http_status": 204,
        "reply": None,
        "status_before": None,
        "status_after": None,
        "verified": None,
    }
    assert len(server.writes) == 1


def test_release_of_a_missing_escrow_is_not_sent(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"detail":"no such escrow"}', "404 Not Found"))

    result = run(*RELEASE, "--allow-unreadable")

    assert (result.code, server.writes) == (6, [])


# Asking


@pytest.mark.parametrize(
    ("answer", "code"), [("tx_1\n", 0), (" TX_1 \n", 3), ("\n", 3), ("", 3), ("yes\n", 3), (f"{KEY}\n", 3)]
)
def test_a_release_asks_for_the_id(answer: str, code: int, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "tx_1", terminal=True, stdin=answer)

    assert (result.code, len(server.writes)) == (code, 1 if code == 0 else 0)
    assert ("id tx_1   amount 100 USD   status held" in result.err, KEY in result.err) == (True, False)


@pytest.mark.parametrize(("answer", "code"), [("100\n", 16), ("tx_1\n", 3), ("100.00\n", 3)])
def test_a_live_release_asks_for_the_amount(answer: str, code: int, service_with_profile: WithProfile) -> None:
    server, run = service_with_profile(json_reply(HELD), 'mode = "live"')

    result = run("tx", "release", "tx_1", terminal=True, stdin=answer)

    assert (result.code, len(server.writes)) == (code, 1 if code == 16 else 0)
    assert result.err.startswith("live: here, http://127.0.0.1")


@pytest.mark.parametrize(
    ("words", "environ", "terminal"),
    [((), {}, False), ((), {"CI": "true"}, True), (("--no-input",), {}, True), (("--json",), {}, True)],
    ids=["a pipe", "CI", "--no-input", "--json"],
)
def test_release_without_a_terminal_is_not_sent(
    words: tuple[str, ...], environ: dict[str, str], *, terminal: bool, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "tx_1", *words, environ=environ, terminal=terminal, stdin="tx_1\n")

    assert (result.code, result.out, server.writes) == (3, "", [])
    assert "--yes" in result.err


def test_release_is_not_sent_when_the_record_changed_during_confirmation(service_and_run: ServiceAndRun) -> None:
    changed = HELD.replace(b'"amount":100', b'"amount":900')
    server, run = service_and_run(
        by_method(GET=in_turn(json_reply(HELD), json_reply(changed)), PUT=json_reply(RELEASED))
    )

    result = run("tx", "release", "tx_1", terminal=True, stdin="tx_1\n")

    assert (result.code, server.writes) == (3, [])
    assert "held 100 USD before, held 900 USD now" in result.err


def test_release_shows_its_body_before_the_confirmation(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b"")))

    result = run("tx", "release", "tx_1", "--data", '{"amount":999999,"to":"x"}', stdin="tx_1\n", terminal=True)

    assert '  PUT {"amount":999999,"to":"x"}\n' in result.err
    assert (result.code, server.writes[0].body) == (0, b'{"amount":999999,"to":"x"}')


# Not sending at all


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_dry_run_shows_the_request_and_sends_nothing(
    line: tuple[str, ...], service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(json_reply(HELD))

    rehearsed = run(*line, "--dry-run", "--json", "--idempotency-key", "k-1").json

    assert server.seen == []
    assert journal() == []
    run(*line, "--idempotency-key", "k-1")
    sent = server.writes[0]
    assert rehearsed["method"] == sent.method
    assert rehearsed["url"] == f"{server.base_url}{sent.target}"
    assert (rehearsed["body"] or "").encode() == sent.body
    assert rehearsed["headers"].pop("Authorization") == "Bearer ***"
    assert rehearsed["headers"].pop("X-Request-Id") == "(created when sent)"
    own = {name: value for name, value in sent.headers if name.lower() not in ("host", "content-length")}
    assert {**rehearsed["headers"]} == {
        name: value for name, value in own.items() if name not in ("Authorization", "X-Request-Id")
    }


# Output


def test_several_ids_are_a_line_each_and_one_exit_code(service_and_run: ServiceAndRun) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        found = seen.target.endswith(("tx_1", "tx_3"))
        record = HELD.replace(b"tx_1", seen.target[-4:].encode())
        reply = http_reply("200 OK", record) if found else http_reply("404 Not Found", b'{"detail":"no"}')
        connection.sendall(reply)

    _server, run = service_and_run(behave)

    lines = run("tx", "get", "-", "--json", stdin="\ufefftx_1\r\ntx_2\r\n\r\ntx_3\r\n")
    table = run("tx", "get", "tx_1", "tx_3")

    assert [line.split(",")[1] for line in lines.out.splitlines()] == [
        ' "outcome": "read"',
        ' "outcome": "refused"',
        ' "outcome": "read"',
    ]
    assert (lines.code, lines.error["code"], lines.error["exit_code"]) == (15, "some_failed", 15)
    assert (table.code, table.out) == (0, "tx_1\theld\t100\tUSD\t\ntx_3\theld\t100\tUSD\t\n")


def test_reading_of_a_user_warns_of_another_id_than_asked(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"id":"usr_2"}'))

    one, several = run("user", "get", "usr_1", "-q"), run("user", "get", "usr_1", "usr_2")

    assert (one.code, several.code) == (0, 0)
    assert [result.err.count("the service answered for usr_1 with the id usr_2") for result in (one, several)] == [1, 1]


# Output that fails


def test_write_result_that_cannot_be_printed_is_reported_with_id(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    class Full:
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            """Nothing is kept back."""

        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            raise OSError

    server, run = service_and_run(json_reply(HELD))

    write, read = run(*CREATE, "--json", stdout=Full()), run("tx", "get", "tx_1", "--json", stdout=Full())

    assert (write.code, write.error["code"]) == (12, "result_not_printed")
    assert "created tx_1 (200)" in write.error["message"]
    assert (read.code, read.error["code"]) == (17, "output_unusable")
    assert len(server.writes) == 1
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize(
    "line",
    [CREATE, RELEASE, (*RELEASE[:2], "tx_1", "tx_2", "--yes"), ("tx", "update", "tx_1", "--data", "{}", "--yes")],
)
def test_done_write_that_cannot_be_shown_is_reported_as_done(
    line: tuple[str, ...], service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_named: object) -> object:
        raise ValueError(f"the key is {KEY}")

    monkeypatch.setattr(View, "only", fail)
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server, run = service_and_run(by_method(GET=reads, POST=json_reply(HELD), PUT=json_reply(HELD)))

    result = run(*line, "--fields", "id", "--json", "--debug")

    assert (result.code, result.error["code"], result.error["outcome"]) == (12, "result_not_printed", "done")
    assert (len(server.writes), KEY in result.err) == (1, False)
    if line is CREATE:
        assert (result.error["id"], result.error["entry"]) == ("tx_1", "j1")


def test_pointer_with_a_huge_index_is_not_found(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"id":"tx_1","items":[1]}'))
    pointer = f"/items/{'9' * 5000}"

    made = run(*CREATE, "--fields", pointer, "--json")

    assert (made.code, made.json, len(server.writes)) == (0, {pointer: None}, 1)


# One escrow, and one service, under several names


def test_second_release_of_a_typed_id_is_refused(service_and_run: ServiceAndRun) -> None:
    """The echo changes its case, and then cannot be read at all."""
    echo = json_reply(HELD.replace(b"tx_1", b"TX_1"))
    server, run = service_and_run(writes_meet(json_reply(b""), reads=in_turn(echo, echo, json_reply(b"", "500 Oh"))))
    lines = (RELEASE, (*RELEASE, "--allow-unreadable"), ("tx", "release", "TX_1", "--yes", "--allow-unreadable"))

    assert ([run(*line).code for line in lines], len(server.writes)) == ([0, 7, 7], 1)


KEY_FILE = 'api_key_file = "key"\n'
NAMES = {
    "by URL": 'base_url = "http://127.0.0.1:PORT"',
    "by host name": 'base_url = "http://localhost:PORT"',
    "by service_id": 'base_url = "http://127.0.0.1:PORT"\nservice_id = "other"',
    "by host name and service_id": 'base_url = "http://localhost:PORT"\nservice_id = "third"',
}


@pytest.mark.parametrize("second", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (RELEASE, {(0, 7)}),
        ((*CREATE, "--reference", "r"), {(0, 7)}),
        # Where both spell it alike, this is the same request under the same key: its stored result.
        ((*CREATE, "--idempotency-key", "k"), {(0, 7), (0, 0)}),
        (CREATE, {(12, 12)}),
    ],
    ids=["release", "reference", "key", "unknown"],
)
def test_duplicate_is_refused_under_another_name_of_the_service(
    serve: Serve,
    run: Run,
    write_config: Callable[[str], Path],
    line: tuple[str, ...],
    codes: set[tuple[int, ...]],
    second: str,
) -> None:
    """A service_id joins names; it never parts an origin from itself."""
    server = serve(writes_meet(hang_up if line == CREATE else json_reply(HELD)))
    first = 'base_url = "http://127.0.0.1:PORT"\nservice_id = "acme"'
    config = write_config(
        f"[profiles.a]\n{KEY_FILE}{first}\n[profiles.b]\n{KEY_FILE}{second}\n".replace("PORT", str(server.port))
    )
    (config.parent / "key").write_text(KEY)
    (config.parent / "key").chmod(0o600)

    found = tuple(run("-p", name, *line).code for name in ("a", "b"))

    assert (found in codes, len(server.writes)) == (True, 1), found


UUID = "9b2f8a1c-6d4e-4f0a-8f3e-5b7c9d0e1f2a"


def release(resource_id: str, *words: str) -> tuple[str, ...]:
    return ("tx", "release", resource_id, "--yes", *words)


def unnamed(_seen: Any, connection: Any) -> None:
    """Answer with a record that does not say which escrow it is."""
    json_reply(b'{"status":"held","amount":100,"currency":"USD"}')(_seen, connection)


def test_ids_that_differ_in_case_are_refused_in_one_command(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=unnamed))

    result = run(*release("tx_ab", "TX_AB"), "--json")

    assert (result.code, result.error["code"], server.seen) == (2, "bad_value", [])
    assert "tx_ab and TX_AB" in result.error["message"]


@pytest.mark.parametrize("first", [json_reply(b""), hang_up], ids=["done", "unknown"])
def test_release_of_an_id_in_another_case_is_refused(
    service_and_run: ServiceAndRun, journal: Journal, first: Any
) -> None:
    server, run = service_and_run(writes_meet(in_turn(first, json_reply(b"")), reads=unnamed))
    run(*release(UUID))

    refused = run(*release(UUID.upper()), "--json")
    skipped = run(*release(UUID.upper(), "--skip-released"))
    allowed = run(*release(UUID.upper(), "--allow-duplicate", "j1"))

    assert (refused.code, refused.error["code"], skipped.code) == (7, "conflict", 7)
    assert "--allow-duplicate j1" in refused.error["hint"]
    assert (allowed.code, len(server.writes)) == (0, 2)
    assert len(journal()) == 2


def test_release_of_the_exact_id_is_never_allowed_twice(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=unnamed))
    run(*release("tx_ab"))

    again = run(*release("tx_ab", "--allow-duplicate", "j1"), "--json")

    assert (again.code, again.error["code"], len(server.writes)) == (7, "already_done", 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Zu\u0308rich 1", "Z\u00fcrich 1"),
        ("order-1", " order-1 "),
        ("order-1", "order\ufe0f-1"),
        ("order-1", "order\u3164-1"),
    ],
    ids=["composed", "blanks", "variation selector", "filler"],
)
def test_references_that_look_alike_are_one(service_and_run: ServiceAndRun, first: str, second: str) -> None:
    server, run = service_and_run(json_reply(HELD))
    assert run(*CREATE, "--reference", first).code == 0

    again = run(*CREATE, "--reference", second, "--json")

    assert (again.code, again.error["code"], len(server.writes)) == (7, "reference_reused", 1)


def test_references_that_differ_in_case_are_two(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(holding())

    codes = [run(*CREATE, "--reference", text).code for text in ("order-a", "order-A", "\u3164")]

    assert (codes, len(server.writes)) == ([0, 0, 2], 2)
