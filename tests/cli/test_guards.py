"""Entries of the journal prevent duplicate writes; each server counts the requests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import hang_up

from cli.conftest import Journal
from cli.replies import CREATE, HELD, RELEASE, in_turn, json_reply, writes_meet


def test_reference_of_an_unknown_create_is_refused_with_allow_duplicate_too(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(in_turn(hang_up, json_reply(HELD)))
    again = ("tx", "create", "--amount", "7", "--currency", "USD", "--reference", "A-1", "--json")
    assert run(*CREATE, "--reference", "A-1").code == 12

    refused, allowed = run(*again), run(*again, "--allow-duplicate", "j1")

    assert [result.code for result in (refused, allowed)] == [12, 12]
    assert {result.error["code"] for result in (refused, allowed)} == {"earlier_unknown"}
    assert ("--allow-duplicate" in str(refused.error["hint"]), len(server.writes)) == (False, 1)


def test_throttled_create_is_not_repeated_by_default(service_and_run: ServiceAndRun, journal: Journal) -> None:
    """A proxy that sent it twice may have had the first one applied."""
    server, run = service_and_run(in_turn(json_reply(b"", "429 Later"), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    first, second = run(*keyed), run(*keyed, "--json")

    assert (first.code, second.code, len(server.writes)) == (9, 9, 1)
    assert "another --idempotency-key" in second.error["hint"]
    assert journal() == [("create_transaction", "refused")]


def test_create_is_sent_again_after_its_api_key_was_refused(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(in_turn(json_reply(b"", "403 Forbidden"), json_reply(HELD)))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    refused = run(*keyed)
    again, repeated = (run(*keyed, environ={"ESCROWCTL_API_KEY": "sk_test_the_right_one"}) for _ in range(2))

    assert (refused.code, again.code, repeated.code) == (5, 0, 0)
    assert [seen.header("Idempotency-Key") for seen in server.writes] == ["order-1"] * 2
    assert journal() == [("create_transaction", "done")]


def test_conflict_on_a_later_attempt_proves_nothing(retrying_service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = retrying_service_and_run(in_turn(json_reply(b"", "429 Later"), json_reply(b"", "409 Conflict")))
    keyed = (*CREATE, "--idempotency-key", "order-1")

    codes = [run(*keyed).code, run(*keyed).code]

    assert (codes, len(server.writes)) == ([12, 12], 2)
    assert journal() == [("create_transaction", "unknown")]


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
UNNAMED = json_reply(b'{"status":"held","amount":100,"currency":"USD"}')


def release(resource_id: str, *words: str) -> tuple[str, ...]:
    return ("tx", "release", resource_id, "--yes", *words)


def test_ids_that_differ_in_case_are_refused_in_one_command(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=UNNAMED))

    result = run(*release("tx_ab", "TX_AB"), "--json")

    assert (result.code, result.error["code"], server.seen) == (2, "bad_value", [])
    assert "tx_ab and TX_AB" in result.error["message"]


def test_release_of_an_id_in_another_case_is_refused(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(writes_meet(in_turn(hang_up, json_reply(b"")), reads=UNNAMED))
    run(*release(UUID))

    refused = run(*release(UUID.upper()), "--json")
    skipped = run(*release(UUID.upper(), "--skip-released"))
    allowed = run(*release(UUID.upper(), "--allow-duplicate", "j1"))

    assert (refused.code, refused.error["code"], skipped.code) == (7, "conflict", 7)
    assert "--allow-duplicate j1" in refused.error["hint"]
    assert (allowed.code, len(server.writes)) == (0, 2)
    assert len(journal()) == 2
