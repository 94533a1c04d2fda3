"""Entries of the journal prevent duplicate writes; each server counts the requests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import hang_up

from cli.conftest import Journal
from cli.replies import CREATE, HELD, RELEASE, holding, in_turn, json_reply, writes_meet

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


def test_create_is_sent_with_allow_duplicate_of_the_entry(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))

    run(*CREATE)
    missing, right = run(*CREATE, "--allow-duplicate", "j9", "--json"), run(*CREATE, "--allow-duplicate", "j1")

    assert (missing.code, right.code, len(server.writes)) == (2, 0, 2)
    assert "no entry j9" in missing.error["message"]
    assert journal() == [("create_transaction", "unknown"), ("create_transaction", "done")]


def test_reference_of_an_unknown_create_is_refused_with_allow_duplicate_too(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))
    again = ("tx", "create", "--amount", "7", "--currency", "USD", "--reference", "A-1", "--json")
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


def test_throttled_create_is_not_repeated_under_its_key_by_default(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    """A proxy that sent it twice may have had the first one applied."""
    server, run = service_and_run(in_turn(json_reply(b"", "429 Later"), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    first, second = run(*keyed), run(*keyed, "--json")

    assert (first.code, second.code, len(server.writes)) == (9, 9, 1)
    hint = second.error["hint"]
    assert "another --idempotency-key" in hint
    assert journal() == [("create_transaction", "refused")]


def test_create_is_sent_again_after_its_api_key_was_refused(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(in_turn(json_reply(b"", "403 Forbidden"), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    refused = run(*keyed)
    again, repeated = (run(*keyed, environ={"ESCROWCTL_API_KEY": "sk_test_the_right_one"}) for _ in range(2))

    assert (refused.code, again.code, repeated.code) == (5, 0, 0)
    assert [seen.header("Idempotency-Key") for seen in server.writes] == ["order-1"] * 2
    assert journal() == [("create_transaction", "done")]


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
def test_duplicate_is_refused_under_another_name_of_the_service(
    serve: Serve, run: Run, write_config: Callable[[str], Path], second: str
) -> None:
    """A service_id joins names; it never parts an origin from itself."""
    server = serve(writes_meet(json_reply(HELD)))
    first = 'base_url = "http://127.0.0.1:PORT"\nservice_id = "acme"'
    config = write_config(
        f"[profiles.a]\n{KEY_FILE}{first}\n[profiles.b]\n{KEY_FILE}{second}\n".replace("PORT", str(server.port))
    )
    (config.parent / "key").write_text(KEY)
    (config.parent / "key").chmod(0o600)

    codes = [run("-p", name, *RELEASE).code for name in ("a", "b")]

    assert (codes, len(server.writes)) == ([0, 7], 1)


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


def test_release_of_an_id_in_another_case_is_refused(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(writes_meet(in_turn(hang_up, json_reply(b"")), reads=unnamed))
    run(*release(UUID))

    refused = run(*release(UUID.upper()), "--json")
    skipped = run(*release(UUID.upper(), "--skip-released"))
    allowed = run(*release(UUID.upper(), "--allow-duplicate", "j1"))

    assert (refused.code, refused.error["code"], skipped.code) == (7, "conflict", 7)
    assert "--allow-duplicate j1" in refused.error["hint"]
    assert (allowed.code, len(server.writes)) == (0, 2)
    assert len(journal()) == 2
