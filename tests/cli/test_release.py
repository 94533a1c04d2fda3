"""`tx release`: reads before and after, expectations, confirmation, and what is known as released."""

import socket

import pytest
from batch.conftest import Clock
from conftest import KEY, Run, ServiceAndRun
from wire_server import Behave, Seen, by_method

from cli.conftest import Profile
from cli.replies import HELD, RELEASE, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet


def service() -> Behave:
    """A service that keeps whether tx_1 is released."""
    state = {"record": HELD}

    def get(seen: Seen, connection: socket.socket) -> None:
        json_reply(state["record"])(seen, connection)

    def put(seen: Seen, connection: socket.socket) -> None:
        state["record"] = RELEASED
        get(seen, connection)

    return by_method(GET=get, POST=json_reply(HELD), PUT=put)


def test_a_release_that_reads_back_as_released_is_verified(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=service())

    result = run(*RELEASE, "--json")

    assert (result.code, result.err) == (0, "")
    assert result.json["verified"] is True
    assert (result.json["status_before"], result.json["status_after"]) == ("held", "released")
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "GET"]


def test_a_release_known_as_done_is_refused_without_a_request(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=service())
    run(*RELEASE)
    before = len(server.seen)

    again, allowed = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (again.code, again.error["code"], again.error["entry"]) == (7, "already_done", "j1")
    assert (allowed.code, allowed.json["verified"]) == (0, True)
    assert len(server.writes) == 1
    assert len(server.seen) == before + 1, "only --skip-released read it again"


def test_the_same_key_again_prints_the_stored_release(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=service())
    keyed = (*RELEASE, "--idempotency-key", "release-1", "--json")

    first, second = run(*keyed), run(*keyed)
    other = run("tx", "release", "tx_2", "--yes", "--idempotency-key", "release-1")

    assert (first.code, second.code, other.code) == (0, 0, 7)
    assert (second.json["reply"], second.json["verified"]) == (first.json["reply"], True)
    assert '"code": "replayed"' in second.err
    assert len(server.writes) == 1


def test_release_of_a_released_escrow_is_refused_after_one_read(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=json_reply(RELEASED))

    codes = [run(*line).code for line in (RELEASE, (*RELEASE, "--skip-released"))]
    # No profile says so; but that word is no reason to send it.
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
    codes += [run(*line, environ=environ).code for line in (RELEASE, (*RELEASE, "--skip-released"))]

    assert (codes, server.writes) == ([7, 0] * 2, [])


def test_an_answered_unknown_that_reads_back_as_released_is_done(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"<html>", "502 Bad Gateway"), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.json["http_status"], result.json["verified"]) == (0, 502, True)
    history = run("journal", "show", "j1", "--json").json["history"]
    assert [event["state"] for event in history] == ["in_flight", "unknown", "done"]
    assert len(server.writes) == 1


def test_a_release_can_wait_until_it_reads_as_released(profile: Profile, run: Run) -> None:
    clock = Clock()
    queued = json_reply(HELD.replace(b"held", b"PAYOUT_QUEUED"))
    reads = in_turn(json_reply(HELD), queued, json_reply(b"oops", "503 Busy"), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", "204 No Content"), reads=reads))

    reached = run(*RELEASE, "--wait", "--json", **clock.injected, random_fraction=lambda: 0.0)

    assert (reached.code, reached.json["status_after"], reached.json["verified"]) == (0, "released", True)
    # Two seconds to the next look, and half a second until the look that failed is tried again.
    assert (clock.now, len(server.writes)) == (2.5, 1)


def test_wait_ends_at_its_deadline_and_reports_the_accepted_release(profile: Profile, run: Run) -> None:
    clock = Clock()
    server = profile(STATUS_RELEASED, behave=json_reply(HELD))

    expired = run(*RELEASE, "--wait", "--deadline", "10s", "--json", **clock.injected)

    assert (expired.code, expired.out, expired.error["code"]) == (13, "", "wait_expired")
    assert (expired.error["outcome"], clock.now, len(server.writes)) == ("done", 10.0, 1)


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
    line: tuple[str, ...], expect: tuple[str, ...], profile: Profile, run: Run
) -> None:
    server = profile(STATUS_RELEASED, behave=json_reply(RELEASED))

    result = run(*line, *expect, "--json")

    assert (result.code, result.error["code"], server.writes) == (3, "expectation_failed", [])


@pytest.mark.parametrize(("expect", "code"), [("100", 0), ("5000", 3)])
@pytest.mark.parametrize("option", ["--skip-released", "--idempotency-key=K1"])
def test_expectation_fails_on_an_escrow_released_from_here(
    option: str, expect: str, code: int, profile: Profile, run: Run
) -> None:
    server = profile(STATUS_RELEASED, behave=service())
    assert run(*RELEASE, option).code == 0

    result = run(*RELEASE, option, "--expect-amount", expect, "--json")

    assert (result.code, len(server.writes)) == (code, 1)


def test_a_record_that_cannot_be_read_is_released_only_unread(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(GET=json_reply(b"<html>"), PUT=json_reply(b"", "204 No Content")))

    refused, unread = run(*RELEASE), run(*RELEASE, "--allow-unreadable", "--json")

    assert (refused.code, refused.out) == (10, "")
    assert "--allow-unreadable" in refused.err
    assert (unread.code, len(server.writes)) == (0, 1)
    nothing = dict.fromkeys(("reply", "status_before", "status_after", "verified"))
    assert unread.json == {"id": "tx_1", "http_status": 204} | nothing


def test_release_of_a_missing_escrow_is_not_sent(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"detail":"no such escrow"}', "404 Not Found"))

    result = run(*RELEASE, "--allow-unreadable")

    assert (result.code, server.writes) == (6, [])


@pytest.mark.parametrize(
    ("answer", "code"), [("tx_1\n", 0), (" TX_1 \n", 3), ("\n", 3), ("", 3), ("yes\n", 3), (f"{KEY}\n", 3)]
)
def test_a_release_asks_for_the_id(answer: str, code: int, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "tx_1", terminal=True, stdin=answer)

    assert (result.code, len(server.writes)) == (code, 1 if code == 0 else 0)
    assert ("id tx_1   amount 100 USD   status held" in result.err, KEY in result.err) == (True, False)


@pytest.mark.parametrize(("answer", "code"), [("100\n", 16), ("tx_1\n", 3), ("100.00\n", 3)])
def test_a_live_release_asks_for_the_amount(answer: str, code: int, profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, 'mode = "live"', behave=json_reply(HELD))

    result = run("tx", "release", "tx_1", terminal=True, stdin=answer)

    assert (result.code, len(server.writes)) == (code, 1 if code == 16 else 0)
    assert result.err.startswith("live: a, http://127.0.0.1")


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


@pytest.mark.parametrize(
    ("line", "now"),
    [
        (RELEASE[:3], HELD.replace(b'"amount":100', b'"amount":900')),
        (("tx", "update", "tx_1", "--data", "{}"), HELD.replace(b"held", b"disputed")),
    ],
    ids=["release", "update"],
)
def test_record_that_changed_during_the_confirmation_is_not_written(
    line: tuple[str, ...], now: bytes, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(writes_meet(json_reply(RELEASED), reads=in_turn(json_reply(HELD), json_reply(now))))

    result = run(*line, terminal=True, stdin="tx_1\n")

    assert (result.code, server.writes) == (3, [])
    assert "it was held 100 USD, it is " in result.err


def test_release_shows_its_body_before_the_confirmation(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b"")))

    result = run("tx", "release", "tx_1", "--data", '{"amount":999999,"to":"x"}', stdin="tx_1\n", terminal=True)

    assert '  PUT {"amount":999999,"to":"x"}\n' in result.err
    assert (result.code, server.writes[0].body) == (0, b'{"amount":999999,"to":"x"}')
