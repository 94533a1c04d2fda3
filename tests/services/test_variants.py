"""The client's writes against every variant of the sandbox, over sockets: only the profile differs.

Each case is a piece of an operator's work, with what must be true of the money whatever the service looks like.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Result, Run
from sandbox.serving import serving_here

from escrowctl.sandbox.settings import VARIANTS

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning")

FOREIGN = (
    'reply.id = "/escrowNo"\nreply.status = "/escrowState"\n'
    'reply.amount = "/value/amt"\nreply.currency = "/value/ccy"\n'
)
PROFILES: Mapping[tuple[str, str], str] = {
    ("prefix", "/v1"): 'api_prefix = "/v1"\n',
    ("fields", "foreign"): FOREIGN,
    ("idempotent", "on"): 'idempotency = "header"\n',
}
"""What a profile says about a variant, where it needs to."""

ALONE = [{name: value} for name, values in VARIANTS.items() for value in values[1:]]
TOGETHER = [
    {},
    {"prefix": "/v1", "fields": "foreign", "created": "201", "release": "empty", "errors": "text"},
    {"prefix": "/v1", "fields": "envelope", "created": "201", "release": "empty", "errors": "message"},
    {"fields": "camel", "idempotent": "on", "release": "empty", "errors": "object"},
]


class Client(NamedTuple):
    """A `run` with the profile of the variant; `deduplicates`: the service recognises a repeated key."""

    run: Callable[..., Result]
    sandbox: Run
    deduplicates: bool

    def create(self, *words: str) -> Result:
        return self.run("tx", "create", "--amount", "100", "--currency", "USD", "--json", *words)

    def count_escrows(self) -> dict[str, int]:
        """Return how many escrows the service has in each state."""
        found: dict[str, int] = self.sandbox("sandbox", "status", "--json").json["transactions"]
        return found

    def fail(self, setting: str) -> None:
        assert self.sandbox("sandbox", "set", setting).code == 0


@pytest.fixture(params=[*TOGETHER, *ALONE], ids=lambda one: ",".join(map("=".join, one.items())) or "amnesiac")
def client(request: pytest.FixtureRequest, home: Path, run: Run) -> Iterator[Client]:
    variants: dict[str, str] = request.param
    with serving_here(home, **variants) as served:
        more = "".join(PROFILES.get(one, "") for one in variants.items())
        profile = f'[profiles.p]\nbase_url = "{served.base_url}"\nmode = "test"\nstatus.released = ["released"]\n{more}'
        (home / "config.toml").write_text(profile)
        keys = home / "credentials.toml"
        keys.touch(mode=0o600)
        keys.write_text(f'[p]\norigin = "{served.base_url}"\nkey = "{served.key}"\n')
        client = Client(lambda *words: run("-p", "p", *words), run, "idempotent" in variants)
        yield client
        assert run("sandbox", "ledger", "--check").code == 0


def read_id(made: Result) -> str:
    """Return the id in the reply to a create, whatever it is called."""
    assert made.code == 0, made.err
    return next(str(value) for value in made.json.values() if str(value).startswith("tx_"))


def check_create_and_release(client: Client) -> None:
    made = read_id(client.create("--reference", "a"))
    assert client.create("--reference", "a").code == 7
    assert client.run("tx", "release", made, "--yes", "--expect-currency", "EUR").code == 3

    released = client.run("tx", "release", made, "--yes", "--expect-amount", "100", "--json")

    assert (released.code, released.json["status_after"], released.json["verified"]) == (0, "released", True)
    assert client.run("tx", "release", made, "--yes").code == 7
    assert client.count_escrows() == {"released": 1}


def check_lost_create(client: Client) -> None:
    client.fail("fault.create=drop-reply,1x")

    lost = client.create()

    assert client.count_escrows() == {"held": 1}
    if client.deduplicates:
        assert lost.code == 0
        return
    assert (lost.code, lost.error["outcome"]) == (12, "unknown")
    assert client.create().code == 12
    found = client.run("tx", "list", "-q").out.strip()
    settled = client.run("journal", "resolve", lost.error["entry"], "--applied", "--id", found, "--reason", "seen")
    assert settled.code == 0, settled.err
    assert client.count_escrows() == {"held": 1}


def check_lost_release(client: Client) -> None:
    made = read_id(client.create())
    client.fail("fault.release=drop-reply,1x")

    lost = client.run("tx", "release", made, "--yes", "--json")

    if not client.deduplicates:
        assert (lost.code, lost.error["outcome"]) == (12, "unknown")
        assert client.run("journal", "resolve", lost.error["entry"]).code == 0
    assert client.run("tx", "release", made, "--yes").code == 7
    assert client.count_escrows() == {"released": 1}


def check_refusals(client: Client) -> None:
    refused = client.run("tx", "create", "--amount", "4.02", "--currency", "USD", "--json")

    assert (refused.code, refused.error["outcome"], refused.error["http_status"]) == (8, "refused", 402)
    assert "4.02" in refused.error["message"]
    assert client.run("tx", "update", "tx_RELEASED", "--data", '{"note": "x"}', "--yes").code == 8
    assert client.run("tx", "release", "tx_00000000", "--yes").code == 6
    assert client.count_escrows() == {}


def check_broken_reply(client: Client) -> None:
    client.fail("fault.create=truncated,1x")

    broken = client.create()

    assert broken.code == (0 if client.deduplicates else 12)
    assert client.count_escrows() == {"held": 1}


def check_batch(client: Client, folder: Path) -> None:
    rows = folder / "rows.csv"
    rows.write_text("amount,currency,reference\n5,USD,a\n6,USD,b\n7,EUR,c\n")
    assert client.run("batch", "create", str(rows), "--yes").code == 0
    assert client.run("batch", "create", str(rows), "--yes").code == 7
    assert client.count_escrows() == {"held": 3}


def check_webhook(client: Client) -> None:
    made = client.run("webhook", "create", "--url", "http://127.0.0.1:9/hooks")
    assert made.code == 0, made.err
    assert "http://127.0.0.1:9/hooks" in client.run("webhook", "list").out


CASES = (check_create_and_release, check_lost_create, check_lost_release, check_refusals, check_broken_reply)


@pytest.mark.representative("prefix=/v1,fields=foreign*-check_lost_release", "amnesiac-check_lost_create")
@pytest.mark.parametrize("check", CASES, ids=lambda check: check.__name__)
def test_writes_against_each_variant(client: Client, check: Callable[[Client], None]) -> None:
    check(client)


@pytest.mark.thorough
def test_batch_and_webhook_against_each_variant(client: Client, tmp_path: Path) -> None:
    check_batch(client, tmp_path)
    check_webhook(client)
