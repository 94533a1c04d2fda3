"""What the sandbox sends verifies with what other people wrote: the specification's vector, and its library."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import standardwebhooks
from conftest import Serve
from wire_server import Seen, answering, http_reply

from escrowctl.sandbox.sender import sign
from escrowctl.sandbox.service import Sandbox
from escrowctl.sandbox.store import open_store
from sandbox.test_delivery import Shop

Connect = Callable[[Sandbox], httpx.Client]


@pytest.fixture
def sent(folder: Path, connect: Connect, serve: Serve) -> tuple[str, list[Seen]]:
    """The secret of an endpoint and two deliveries, at this moment: the libraries compare the time with theirs."""
    sandbox = Sandbox(open_store(folder, now=lambda: datetime.now(UTC)))
    there = Shop(connect(sandbox), serve(answering(http_reply("200 OK"))))
    there.create(note='\u20ac \U0001f600 "quoted" <&>', metadata={"rate": 1.10, "list": [None, True]})
    there.advance(days=30)
    there.create()
    sandbox.deliver()
    sandbox.close()
    assert len(there.seen) == 2
    return there.secret, there.seen


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

    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_delivery_verifies_with_the_python_library(sent: tuple[str, list[Seen]]) -> None:
    secret, (first, second) = sent

    for seen in (first, second):
        assert standardwebhooks.Webhook(secret).verify(seen.body, headers(seen)) == json.loads(seen.body)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(first.body + b" ", headers(first))
