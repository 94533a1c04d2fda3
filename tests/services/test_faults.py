"""Each write under each fault, against every variant: never called what it is not, and in the end done once."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from conftest import Result

from services.variants import AMNESIAC, Client

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning")

FAULTS = ("drop-reply", "reset", "500", "bad-json", "truncated", "429")
URL = "http://127.0.0.1:9/hooks"


class Write(NamedTuple):
    """A command line (`ESCROW` is the id of a held one), and the ids of what it has done at the service."""

    line: str
    find: Callable[[Client], list[str]]


WRITES = {
    "create": Write(
        "tx create --amount 2 --currency USD --reference r", lambda client: client.read_ledger().created[1:]
    ),
    "release": Write("tx release ESCROW --yes", lambda client: client.read_ledger().released),
    "webhook": Write(f"webhook create --url {URL}", lambda client: client.run("webhook", "list", "-q").out.split()),
}


def settle(client: Client, unknown: Result, done: list[str]) -> None:
    """Resolve an unknown write by reading, else by recording what support would answer."""
    entry = unknown.error["entry"]
    if client.resolve(entry).code != 0:
        answer = ("--applied", "--id", *done) if done else ("--not-applied",)
        settled = client.resolve(entry, *answer, "--reason", "support's answer")
        assert settled.code == 0, settled.err


@pytest.mark.representative("amnesiac-create-truncated", "release=empty-release-500", "idempotent=on-webhook-reset")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("write", WRITES)
def test_write_under_a_fault_is_done_once(client: Client, write: str, fault: str) -> None:
    typed, find = WRITES[write]
    line = typed.replace("ESCROW", client.create_id(amount="1")).split()
    client.set_fault(f"{write}={fault}")

    first = client.run(*line, "--json")

    done = find(client)
    assert first.code == (0 if is_known(client, write, fault) else 12), first.err
    assert len(done) == (0 if fault == "reset" and first.code else 1)
    if first.code == 12:
        assert first.error["outcome"] == "unknown"
        assert client.run(*line, "--json").error["code"] == "earlier_unknown"
        assert find(client) == done
        settle(client, first, done)
    if not done:
        assert client.run(*line).code == 0
    assert len(find(client)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("client", [AMNESIAC, "idempotent=on"], indirect=True)
def test_create_without_a_reply_in_time_is_done_once(client: Client) -> None:
    """What does not arrive has no shape: the other variants would be the same."""
    client.set_fault("create=latency:2s")

    late = client.create("--timeout", "1")

    assert (late.code, client.count_moves()) == (12, (1, 0))
    if client.deduplicates:
        assert client.resolve(late.error["entry"], "--resend", "--yes", "--reason", "it knows the key").code == 0
    else:
        settle(client, late, client.read_ledger().created)
    assert client.count_moves() == (1, 0)


def is_known(client: Client, write: str, fault: str) -> bool:
    """Whether escrowctl finds out by itself that a write is done: by sending it again, or by reading it back."""
    if fault == "429" or (client.deduplicates and fault != "bad-json"):
        return True
    # An empty reply cannot be cut: of it nothing arrives.
    read_back = ("500", "bad-json") if client.releases_silently else ("500", "bad-json", "truncated")
    return write == "release" and fault in read_back
