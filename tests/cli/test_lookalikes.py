"""Ids and references that a service or a person may confuse."""

from typing import Any

import pytest
from conftest import Run, ServiceAndRun
from wire_server import hang_up

from cli.conftest import Journal
from cli.replies import CREATE, HELD, holding, in_turn, json_reply, writes_meet

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


def test_reads_take_ids_that_differ_in_case(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(unnamed)

    assert (run("tx", "get", "tx_ab", "TX_AB").code, len({seen.target for seen in server.seen})) == (0, 2)


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


def test_references_that_differ_in_case_are_two(service_and_run: ServiceAndRun, run: Run) -> None:
    server, there = service_and_run(holding())

    codes = [there(*CREATE, "--reference", text).code for text in ("order-a", "order-A")]

    assert (codes, len(server.writes)) == ([0, 0], 2)


def test_reference_of_invisible_characters_is_refused(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    assert (run(*CREATE, "--reference", "\u3164").code, server.writes) == (2, [])
