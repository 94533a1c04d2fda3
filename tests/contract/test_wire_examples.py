"""What the client sends, compared with the examples. What the sandbox takes: sandbox/test_interface.py."""

import shlex

import pytest
from conftest import KEY, ServiceAndRun
from wire_examples import EXAMPLES, WireExample
from wire_server import answering, http_reply

RECORD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_client_sends_the_example(example: WireExample, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(answering(http_reply("200 OK", RECORD)))

    run(*shlex.split(example.line))

    seen = next(seen for seen in server.seen if seen.method == example.method)
    assert seen.target == example.target
    assert seen.body == (example.body or b"")
    # Section 5: every request carries the key; Content-Type goes with a body, and only then.
    assert seen.header("Authorization") == f"Bearer {KEY}"
    assert seen.header("Content-Type") == ("application/json" if example.body else None)
    assert KEY not in seen.target
    assert KEY.encode() not in seen.body


def test_every_write_has_a_unique_idempotency_key_and_reads_none(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(answering(http_reply("200 OK", RECORD)))

    run("tx", "create", "--amount", "100", "--currency", "USD")
    run("tx", "create", "--amount", "100", "--currency", "USD")
    run("tx", "release", "tx_1", "--yes")

    keys = [seen.header("Idempotency-Key") for seen in server.writes]
    assert len(keys) == 3
    assert None not in keys
    assert len(set(keys)) == 3
    assert {seen.header("Idempotency-Key") for seen in server.seen if not seen.is_write} == {None}
