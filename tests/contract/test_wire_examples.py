"""Both sides against the examples: what the client sends, and what the sandbox takes."""

import json
import shlex
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from conftest import KEY, ServiceAndRun
from wire_examples import EXAMPLES, WireExample
from wire_server import answering, http_reply

from escrowctl.sandbox.service import open_sandbox

RECORD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_client_sends_the_example(example: WireExample, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(answering(http_reply("200 OK", RECORD)))

    run(*shlex.split(example.line.format(id="tx_1")))

    seen = next(seen for seen in server.seen if seen.method == example.method)
    assert seen.target == example.target.format(id="tx_1")
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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_sandbox_takes_the_example(example: WireExample, tmp_path: Path) -> None:
    sandbox = open_sandbox(tmp_path, now=lambda: datetime(2026, 11, 21, tzinfo=UTC))
    try:
        with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app), base_url="http://sandbox") as client:
            headers = {"Authorization": f"Bearer {sandbox.key}"}
            with_body = headers | {"Content-Type": "application/json"}
            made = client.post("/api/v1/transactions", content=b'{"amount":7,"currency":"USD"}', headers=with_body)

            reply = client.request(
                example.method,
                example.target.format(id=made.json()["id"]),
                content=example.body,
                headers=with_body if example.body else headers,
            )
    finally:
        sandbox.close()

    assert reply.status_code == example.status
    record = json.loads(reply.text, parse_float=Decimal)
    collection = example.name.startswith("list") or example.name == "webhooks"
    assert isinstance(record["data"], list) if collection else example.status == 400 or isinstance(record["id"], str)
    if example.name.startswith("create"):
        assert example.body is not None
        sent = json.loads(example.body, parse_float=Decimal)
        assert {name: record[name] for name in sent} == sent
        token = example.body.partition(b":")[2].partition(b",")[0].decode()
        assert f'"amount":{token},' in reply.text.replace(" ", ""), "the amount's token is not what was sent"


def test_example_bodies_match_the_interface() -> None:
    """Section 2: a create has amount and currency, and nothing else is published."""
    for example in EXAMPLES:
        if example.body and example.name.startswith("create"):
            assert set(json.loads(example.body)) == {"amount", "currency"}
