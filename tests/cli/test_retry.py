"""Retries: which requests, when, and after which wait; only on proof, and limited."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Run, ServiceAndRun
from wire_server import Behave, WireServer, hang_up, reset, say_nothing

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, in_turn, json_reply, writes_meet

GET = ("tx", "get", "tx_1")


class Clock:
    """A clock that only sleeping moves; `slept` are the waits, in order."""

    def __init__(self, chance: float = 0.0) -> None:
        self.slept: list[float] = []
        self.injected: dict[str, Any] = {
            "sleep": self.slept.append,
            "now": lambda: NOW,
            "random_fraction": lambda: chance,
        }


def test_read_that_failed_temporarily_is_retried_and_shown(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(json_reply(b"", "503 Busy"), hang_up, json_reply(HELD)))

    result = run(*GET, "--json", **Clock().injected)

    notes = [json.loads(line)["note"]["code"] for line in result.err.splitlines()]
    assert (result.code, result.json["id"], len(server.seen), notes) == (0, "tx_1", 3, ["waiting"] * 2)


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.5, 0.5]), (0.999999, [1.0, 2.0])], ids=["least", "most"])
def test_the_wait_grows_is_never_short_and_differs_by_chance(
    service_and_run: ServiceAndRun, chance: float, waits: list[float]
) -> None:
    _, run = service_and_run(json_reply(b"", "503 Busy"))
    clock = Clock(chance)

    run(*GET, **clock.injected)

    assert clock.slept == pytest.approx(waits, abs=0.001)


def test_read_that_used_up_its_timeout_is_not_retried(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(say_nothing)

    assert run(*GET, "--timeout", "0.2").code == 10
    assert len(server.seen) == 1


# Retry-After: seconds or a date; by the service's clock, not ours


@pytest.mark.representative("line1-*", "line*-429 Later-Retry-After: 7-", "line0-503 Busy-Retry-After: 7-")
@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        (("Retry-After: 7",), [7.0, 7.0]),
        (("Retry-After: 60",), [60.0, 60.0]),
        (("Retry-After: 61",), []),
        (("Retry-After: 99999999999999999999999999",), []),
        (("Retry-After: soon",), [0.5, 0.5]),
        (("Retry-After: \u0667",), [0.5, 0.5]),
        (("Retry-After: Sat, 21 Nov 2026 03:13:00 GMT",), [16.0, 16.0]),
        (("Retry-After: Sat, 21 Nov 2026 03:00:00 GMT",), [0.5, 0.5]),
        (("Date: Tue, 26 Dec 2027 00:00:00 GMT", "Retry-After: Tue, 26 Dec 2027 00:00:20 GMT"), [20.0, 20.0]),
        (("Date: Fri, 17 Oct 2025 00:00:00 GMT", "Retry-After: Fri, 17 Oct 2025 00:00:20 GMT"), [20.0, 20.0]),
    ],
    ids=lambda value: str(value[-1]) if value and isinstance(value, tuple) else "",
)
@pytest.mark.parametrize(("line", "status"), [(GET, "503 Busy"), (GET, "429 Later"), (CREATE, "429 Later")])
def test_wait_follows_retry_after_within_bounds(
    retrying_service_and_run: ServiceAndRun,
    line: tuple[str, ...],
    status: str,
    headers: tuple[str, ...],
    waits: list[float],
) -> None:
    server, run = retrying_service_and_run(
        json_reply(b"", status, *(text.encode().decode("latin-1") for text in headers))
    )
    clock = Clock()

    run(*line, **clock.injected)

    assert (clock.slept, len(server.seen)) == (waits, len(waits) + 1)


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
@pytest.mark.parametrize("status", ["425 Too Early", "429 Later"])
def test_write_refused_before_processing_is_retried_with_the_same_key(
    retrying_service_and_run: ServiceAndRun, journal: Journal, line: tuple[str, ...], status: str
) -> None:
    server, run = retrying_service_and_run(writes_meet(in_turn(json_reply(b"", status), json_reply(HELD))))

    result = run(*line, **Clock().injected)

    keys = {seen.header("Idempotency-Key") for seen in server.writes}
    requests = {seen.header("X-Request-Id") for seen in server.writes}
    assert (result.code, len(server.writes), len(keys), len(requests)) == (0, 2, 1, 2)
    assert journal() == [(f"{line[1]}_transaction", "done" if line is CREATE else "unconfirmed")]
    history = run("journal", "show", "j1", "--json").json["history"]
    assert [event["state"] for event in history] == ["in_flight", "refused", "in_flight", "done"]


def test_write_that_was_not_sent_is_retried_until_connected(run: Run, journal: Journal) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    servers: list[WireServer] = []

    def sleep(_seconds: float) -> None:
        servers.append(WireServer(json_reply(HELD), port=port))

    environ = {"ESCROWCTL_BASE_URL": f"http://127.0.0.1:{port}", "ESCROWCTL_API_KEY": "sk_test_1"}
    try:
        assert (run(*CREATE, environ=environ, sleep=sleep).code, len(servers[0].writes)) == (0, 1)
    finally:
        for server in servers:
            server.close()
    assert journal() == [("create_transaction", "done")]


@pytest.fixture
def deduplicating_service_and_run(profile: Profile, run: Run) -> ServiceAndRun:
    return lambda behave: (profile('idempotency = "header"', behave=behave), run)


@pytest.mark.parametrize(
    "before",
    [
        *([hang_up], [hang_up, json_reply(b"", "409 In Progress")], [json_reply(b"", "500 Oh")]),
        *([json_reply(b"", "503 Busy")], [json_reply(b'{"id":"tx', "502 Bad")], [reset]),
    ],
)
def test_a_deduplicated_write_is_sent_again_under_its_key(
    deduplicating_service_and_run: ServiceAndRun, journal: Journal, before: list[Behave]
) -> None:
    server, run = deduplicating_service_and_run(in_turn(*before, json_reply(HELD)))

    result = run(*CREATE, **Clock().injected)

    assert (result.code, len(server.writes)) == (0, len(before) + 1)
    assert len({(seen.header("Idempotency-Key"), seen.body) for seen in server.writes}) == 1
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize("last", [hang_up, json_reply(b"", "429 Later"), json_reply(b"", "400 No")])
def test_unknown_write_stays_unknown_after_any_last_attempt(
    deduplicating_service_and_run: ServiceAndRun, journal: Journal, last: Behave
) -> None:
    """An attempt that may have been applied is not undone by a later one that was refused."""
    _, run = deduplicating_service_and_run(in_turn(hang_up, last))

    result = run(*CREATE, "--json", **Clock().injected)

    assert (result.code, result.error["code"]) == (12, "outcome_unknown")
    assert journal() == [("create_transaction", "unknown")]


def test_retries_of_many_reads_are_limited_in_an_outage(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b"", "503 Busy"))
    ids = [f"tx_{number}" for number in range(100)]

    run("tx", "get", *ids, **Clock().injected)

    # Ten tokens, and no success to bring any back.
    assert len(server.seen) == 110


def test_successes_earn_retries_back(service_and_run: ServiceAndRun) -> None:
    outage = [json_reply(b"", "503 Busy")] * 15
    server, run = service_and_run(
        in_turn(*outage, *[json_reply(HELD)] * 20, json_reply(b"", "503 Busy"), json_reply(HELD))
    )

    result = run("tx", "get", *["tx_1"] * 26, "--json", **Clock().injected)

    outcomes = [re.search(r'"status": ?"held"', line) is not None for line in result.out.splitlines()]
    assert (outcomes, len(server.seen)) == ([False] * 5 + [True] * 21, 37)


def test_refusal_is_reported_when_the_journal_fails_before_the_next_attempt(
    retrying_service_and_run: ServiceAndRun, home: Path
) -> None:
    server, run = retrying_service_and_run(json_reply(b"", "429 Later"))

    def fail(_seconds: float) -> None:
        (home / "state" / "journal.db-journal").unlink(missing_ok=True)
        (home / "state" / "journal.db-journal").mkdir()

    result = run(*CREATE, "--json", sleep=fail)

    assert (result.code, result.error["code"], result.error["outcome"]) == (9, "rate_limited", "refused")
    assert (len(server.writes), "Nothing was sent" in result.err) == (1, False)
