"""Updates of an escrow: observed, not published, so confirmed, locked, sent once and read back."""

import json
import os
import signal
import socket

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, Seen, by_method, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import CREATE, HELD, RELEASED, STATUS_RELEASED, in_turn, json_reply

UPDATED = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD","note":"checked"}'
UPDATE = ("tx", "update", "tx_1", "--data", '{"note":"checked","n":1.50}')


def test_update_is_sent_as_given_and_the_new_record_shown(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))

    result = run(*UPDATE, "--yes", "--json")

    assert (result.code, result.json) == (0, json.loads(UPDATED))
    assert [(seen.method, seen.target, seen.body) for seen in server.writes] == [
        ("PUT", "/api/v1/transactions/tx_1", b'{"note":"checked","n":1.50}')
    ]


def test_update_is_confirmed_by_id_and_the_record_read_again(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))

    typed = run(*UPDATE, terminal=True, stdin="tx_1\n")
    other = run(*UPDATE, terminal=True, stdin="yes\n")
    piped = run(*UPDATE, "--json")

    assert (typed.code, other.code, piped.code, piped.error["code"]) == (0, 3, 3, "confirmation_needed")
    assert 'PUT {"note":"checked","n":1.50}' in typed.err
    assert [seen.method for seen in server.seen] == ["GET", "GET", "PUT", "GET", "GET"]


@pytest.mark.parametrize(
    ("readings", "words", "warnings"),
    [
        ((HELD, RELEASED), STATUS_RELEASED, 1),
        ((RELEASED, RELEASED), STATUS_RELEASED, 0),
        ((HELD, HELD), STATUS_RELEASED, 0),
        ((HELD, RELEASED), "", 0),
        ((b"<html>", RELEASED), STATUS_RELEASED, 1),
        ((HELD, RELEASED.replace(b"tx_1", b"tx_2")), STATUS_RELEASED, 0),
    ],
)
def test_update_after_which_the_record_reads_as_released_warns(
    profile: Profile, run: Run, readings: tuple[bytes, bytes], words: str, warnings: int
) -> None:
    server = profile(
        words, behave=by_method(GET=in_turn(*(json_reply(reading) for reading in readings)), PUT=json_reply(HELD))
    )

    result = run(*UPDATE, "--yes", "--allow-unreadable", "-q")

    assert (result.code, result.out, len(server.writes)) == (0, "tx_1\n", 1)
    assert result.err.count("warning: after this update, tx_1 has the status released.") == warnings


def interrupt(_seen: Seen, _connection: socket.socket) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(("then", "code"), [(json_reply(b"<html>"), 0), (interrupt, 130)], ids=["HTML", "Ctrl-C"])
def test_update_that_is_not_read_back_is_shown_with_a_warning(
    then: Behave, code: int, profile: Profile, run: Run
) -> None:
    profile(STATUS_RELEASED, behave=by_method(GET=in_turn(json_reply(HELD), then), PUT=json_reply(UPDATED)))

    result = run(*UPDATE, "--yes", "--json")

    assert (result.code, result.json) == (code, json.loads(UPDATED))
    assert "escrowctl could not read tx_1 after the update: " in result.err
    assert code == 130 or '"code": "not_read_back"' in result.err
    assert code == 0 or "after the update: escrowctl was interrupted" in result.err


@pytest.mark.parametrize("body", ['{"note":"release"}', '{"release_immediately":true}', '{"status":"released"}'])
@pytest.mark.parametrize(
    "line", [("tx", "update", "tx_1", "--yes"), ("api", "POST", "/notes", "--yes"), CREATE], ids=" ".join
)
def test_texts_in_a_body_refuse_no_write(profile: Profile, run: Run, line: tuple[str, ...], body: str) -> None:
    server = profile(STATUS_RELEASED, behave=json_reply(HELD))

    assert (run(*line, "--data", body).code, len(server.writes)) == (0, 1)


def test_an_empty_reply_is_accepted_and_the_record_read_back(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(
        by_method(GET=json_reply(HELD), PUT=lambda _s, c: c.sendall(http_reply("204 No Content")))
    )

    result = run(*UPDATE, "--yes", "--json")

    assert (result.code, result.json) == (0, json.loads(HELD))


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ((*UPDATE, "--yes"), ("tx", "update", "tx_1", "--data", '{"note":"else"}', "--yes")),
        (("api", "DELETE", "/hooks/wh_1", "--yes"), ("api", "DELETE", "/hooks/wh_2", "--yes")),
    ],
    ids=["update", "raw call"],
)
def test_write_without_a_reply_blocks_identical_ones(
    line: tuple[str, ...], other: tuple[str, ...], service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(by_method(GET=json_reply(HELD), PUT=hang_up, DELETE=hang_up))

    results = [run(*words, "--json") for words in (line, line, other)]

    codes = [(12, "outcome_unknown"), (12, "earlier_unknown"), (12, "outcome_unknown")]
    assert ([(result.code, result.error["code"]) for result in results], len(server.writes)) == (codes, 2)


def test_repeated_update_is_sent_twice_unless_under_one_key(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))
    keyed = (*UPDATE, "--yes", "--idempotency-key", "k")

    assert [run(*line).code for line in ((*UPDATE, "--yes"), (*UPDATE, "--yes"), keyed)] == [0, 0, 0]
    server.seen.clear()

    # What is replayed is not read back either.
    assert (run(*keyed).code, server.seen) == (0, [])


def test_unreadable_record_is_updated_only_with_allow_unreadable(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(by_method(GET=json_reply(b"<html>"), PUT=json_reply(UPDATED)))

    refused, sent = run(*UPDATE, "--yes"), run(*UPDATE, "--yes", "--allow-unreadable")

    assert (refused.code, sent.code, len(server.writes)) == (10, 0, 1)
    assert "--allow-unreadable" in refused.err
