"""What the sandbox sends verifies with what other people wrote: the specification's vectors, and two libraries."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from conftest import Serve
from node import find_node
from wire_server import Seen, answering, http_reply

from escrowctl.sandbox.service import Sandbox
from escrowctl.sandbox.signing import sign
from escrowctl.sandbox.store import open_store
from sandbox.test_delivery import Shop, signature

Connect = Callable[[Sandbox], httpx.Client]

VERIFY = """
const { Webhook } = require("standardwebhooks");
const given = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const results = given.map(({ secret, body, headers }) => {
  try { new Webhook(secret).verify(body, headers); return "verified"; } catch (error) { return error.message; }
});
console.log(JSON.stringify(results));
"""


@pytest.fixture
def sent(folder: Path, connect: Connect, serve: Serve) -> tuple[list[str], list[Seen]]:
    """Three deliveries at this moment, the last after a rotation; and the secrets, the newest first.

    The libraries compare the timestamp with the clock of the machine.
    """
    sandbox = Sandbox(open_store(folder, now=lambda: datetime.now(UTC)), now=lambda: datetime.now(UTC))
    there = Shop(sandbox, connect(sandbox), serve(answering(http_reply("200 OK"))))
    there.create(note='\u20ac \U0001f600 "quoted" <&>', metadata={"rate": 1.10, "list": [None, True]})
    there.advance(days=30)
    there.create()
    sandbox.deliver()
    rotated = there.call("POST", f"/webhooks/{there.endpoint}/rotate")["secret"]
    there.create()
    sandbox.deliver()
    sandbox.close()
    assert len(there.seen) == 3
    return [rotated, there.secret], there.seen


def headers(seen: Seen) -> dict[str, str]:
    return {name: value for name, value in seen.headers if name.startswith("webhook-")}


def test_vector_of_the_specification() -> None:
    """From the tests of the specification's own libraries (standard-webhooks, libraries/*, 1.0.0)."""
    found = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )

    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_delivery_verifies_with_ten_lines_of_hmac(sent: tuple[list[str], list[Seen]]) -> None:
    (new, old), (first, second, third) = sent

    assert [signature(old, one) for one in (first, second)] == [
        one.header("webhook-signature") for one in (first, second)
    ]
    assert (third.header("webhook-signature") or "").split() == [signature(new, third), signature(old, third)]


def test_each_delivery_verifies_with_the_python_library(sent: tuple[list[str], list[Seen]]) -> None:
    library = pytest.importorskip("standardwebhooks", reason="standardwebhooks is not installed")
    (new, old), (first, second, third) = sent

    for secret, seen in ((old, first), (old, second), (new, third), (old, third)):
        assert library.Webhook(secret).verify(seen.body, headers(seen)) == json.loads(seen.body)
    with pytest.raises(library.WebhookVerificationError):
        library.Webhook(new).verify(first.body, headers(first))
    with pytest.raises(library.WebhookVerificationError):
        library.Webhook(old).verify(first.body + b" ", headers(first))


@pytest.mark.thorough
def test_each_delivery_verifies_with_the_javascript_library(sent: tuple[list[str], list[Seen]]) -> None:
    node = find_node()
    (new, old), (first, second, third) = sent
    given = [
        {"secret": secret, "body": seen.body.decode(), "headers": headers(seen)}
        for secret, seen in ((old, first), (old, second), (new, third), (old, third), (new, first))
    ]

    done = subprocess.run([node, "-e", VERIFY], input=json.dumps(given), capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == ["verified"] * 4 + ["No matching signature found"]
