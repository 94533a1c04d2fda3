"""Updates of an escrow: observed, not published, so confirmed, locked, sent once and never a way to release."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run
from wire_server import Behave, WireServer, by_method, hang_up, http_reply

from cli.replies import HELD, RELEASED, in_turn, json_reply

At = Callable[[Behave], tuple[WireServer, Run]]

UPDATED = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD","note":"checked"}'
UPDATE = ("tx", "update", "tx_1", "--data", '{"note":"checked","n":1.50}')
OBSERVED = "note: PUT /transactions/:id was observed, not published: what it changes is not known\n"


def test_the_update_is_sent_as_given_and_the_services_record_shown(at: At) -> None:
    server, run = at(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))

    result = run(*UPDATE, "--yes", "--json")

    assert (result.code, result.json) == (0, json.loads(UPDATED))
    assert [(seen.method, seen.target, seen.body) for seen in server.writes] == [
        ("PUT", "/api/v1/transactions/tx_1", b'{"note":"checked","n":1.50}')
    ]


def test_the_id_is_typed_and_the_record_read_again_before_it_is_sent(at: At) -> None:
    server, run = at(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))

    typed = run(*UPDATE, terminal=True, stdin="tx_1\n")
    other = run(*UPDATE, terminal=True, stdin="yes\n")

    assert (typed.code, other.code) == (0, 3)
    assert typed.err == OBSERVED + (
        f"  id tx_1   amount 100 USD   status held   profile 127.0.0.1   host {server.base_url}\n"
        '  PUT {"note":"checked","n":1.50}\n'
        "What an update changes is not published. Type the id to send it: tx_1\n> "
    )
    assert other.err.endswith('"yes" is not tx_1: tx_1 was not updated. Nothing was sent.\n')
    assert [seen.method for seen in server.seen] == ["GET", "GET", "PUT", "GET"]


def test_a_record_that_changed_while_it_was_asked_for_is_not_updated(at: At) -> None:
    server, run = at(by_method(GET=in_turn(json_reply(HELD), json_reply(RELEASED)), PUT=json_reply(UPDATED)))

    result = run(*UPDATE, terminal=True, stdin="tx_1\n")

    assert (result.code, server.writes) == (3, [])
    assert "tx_1 changed while you were asked: held 100 USD then, released 100 USD now." in result.err


def test_nobody_is_there_to_ask(at: At) -> None:
    server, run = at(by_method(GET=json_reply(HELD)))

    result = run(*UPDATE, "--json")

    assert (result.code, result.error["code"], server.writes) == (3, "confirmation_needed", [])


@pytest.mark.parametrize("data", ['{"status":"Released"}', '{"state":"RELEASED","note":"x"}'])
def test_an_update_cannot_release(data: str, at: At, write_config: Callable[[str], Path]) -> None:
    server, run = at(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))
    write_config(f'[profiles.p]\nbase_url = "{server.base_url}"\nstatus.released = ["released"]\n')

    result = run("tx", "update", "tx_1", "--data", data, "--yes", environ={"ESCROWCTL_PROFILE": "p"})

    assert (result.code, server.seen) == (2, [])
    assert "which means released: use tx release. Nothing was sent.\n" in result.err


def test_an_empty_reply_is_accepted_and_the_record_read_back(at: At) -> None:
    _server, run = at(by_method(GET=json_reply(HELD), PUT=lambda _s, c: c.sendall(http_reply("204 No Content"))))

    result = run(*UPDATE, "--yes", "--json")

    assert (result.code, result.json) == (0, json.loads(HELD))
    assert '{"note": {"code": "empty_reply", "message": "accepted (204), with no reply body"}}' in result.err


def test_an_update_without_an_answer_is_unknown_and_its_equal_refused_until_settled(at: At) -> None:
    server, run = at(by_method(GET=json_reply(HELD), PUT=hang_up))

    first, again = run(*UPDATE, "--yes", "--json"), run(*UPDATE, "--yes", "--json")
    other = run("tx", "update", "tx_1", "--data", '{"note":"else"}', "--yes", "--json")

    assert [result.code for result in (first, again, other)] == [12, 12, 12]
    assert [result.error["code"] for result in (first, again, other)] == [
        "outcome_unknown",
        "earlier_unknown",
        "outcome_unknown",
    ]
    assert "tx_1 may be updated, or not." in first.error["message"]
    assert len(server.writes) == 2


def test_the_same_update_twice_is_two_updates_and_once_under_one_key(at: At) -> None:
    server, run = at(by_method(GET=json_reply(HELD), PUT=json_reply(UPDATED)))

    assert [run(*UPDATE, "--yes").code for _ in range(2)] == [0, 0]
    assert [run(*UPDATE, "--yes", "--idempotency-key", "k").code for _ in range(2)] == [0, 0]
    assert len(server.writes) == 3


def test_a_record_that_cannot_be_read_is_updated_on_purpose_only(at: At) -> None:
    server, run = at(by_method(GET=json_reply(b"<html>"), PUT=json_reply(UPDATED)))

    refused, sent = run(*UPDATE, "--yes"), run(*UPDATE, "--yes", "--allow-unreadable")

    assert (refused.code, sent.code, len(server.writes)) == (10, 0, 1)
    assert "The update was not sent.\nhint: to update it all the same: --allow-unreadable\n" in refused.err


def test_the_sandbox_answers_as_was_observed(run: Run) -> None:
    made = run("--sandbox", "tx", "create", "--amount", "5", "--currency", "USD", "-q")

    result = run("--sandbox", "tx", "update", made.out.strip(), "--data", "{}", "--yes", "--json")

    assert (result.code, result.error["http_status"]) == (8, 400)
