"""Each variant of the sandbox over sockets, and the profile that fits it: nothing else differs between them.

A variant is what `sandbox set` takes, such as `prefix=/v1`; several are joined by commas.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from conftest import Result, Run
from sandbox.serving import serving_here

from escrowctl.sandbox.settings import VARIANTS as VALUES

AMNESIAC = "amnesiac"
"""Nothing is set: the sandbox answers as its OpenAPI document says, and forgets each Idempotency-Key."""

TOGETHER = (
    "prefix=/v1,fields=foreign,created=201,release=empty,errors=text",
    "prefix=/v1,fields=envelope,created=201,release=empty,errors=message",
    "fields=camel,idempotent=on,release=empty,errors=object",
)
ALONE = tuple(f"{name}={value}" for name, values in VALUES.items() for value in values[1:])
VARIANTS = (AMNESIAC, *ALONE, *TOGETHER)

PROFILE = """
default_profile = "service"
[profiles.service]
base_url = "{base_url}"
mode = "test"
status.released = ["released"]
retry_throttled = true
"""
MORE: Mapping[str, str] = {
    "prefix=/v1": 'api_prefix = "/v1"\n',
    "fields=foreign": (
        'reply.id = "/escrowNo"\n'
        'reply.status = "/escrowState"\n'
        'reply.amount = "/value/amt"\n'
        'reply.currency = "/value/ccy"\n'
    ),
    "idempotent=on": 'idempotency = "header"\n',
}
"""What else the profile of a variant says. The others need nothing: escrowctl knows their shapes."""


class Client(NamedTuple):
    """Runs command lines whose default profile is that of a variant, and reads the sandbox's own ledger."""

    run: Run
    deduplicates: bool
    """The service recognises an Idempotency-Key, and the profile says so."""

    releases_silently: bool
    """A release has no reply body."""

    def create(self, *words: str, amount: str = "100") -> Result:
        return self.run("tx", "create", "--amount", amount, "--currency", "USD", "--json", *words)

    def create_id(self, *words: str, amount: str = "100") -> str:
        made = self.create("-q", *words, amount=amount)
        assert made.code == 0, made.err
        return made.out.strip()

    def release(self, *words: str) -> Result:
        return self.run("tx", "release", *words, "--yes", "--json")

    def resolve(self, entry: str, *words: str) -> Result:
        return self.run("journal", "resolve", entry, *words, "--json")

    def set_fault(self, fault: str) -> None:
        """Set a fault for the next request of its operation: `create=drop-reply`."""
        assert self.run("sandbox", "set", f"fault.{fault},1x").code == 0

    def read_ledger(self) -> "Ledger":
        """Return what the sandbox's ledger says, after asserting that it adds up."""
        found = self.run("sandbox", "ledger", "--json").json
        assert all(currency["balanced"] for currency in found["currencies"])
        paid_in = [one for one in found["entries"] if one["amount"] > 0]
        return Ledger(
            created=[one["transaction"] for one in paid_in if one["account"] == "hold"],
            released=[one["transaction"] for one in paid_in if one["account"].startswith("payee:")],
        )

    def count_moves(self) -> tuple[int, int]:
        """Return how many escrows the sandbox has created, and how many it has released."""
        ledger = self.read_ledger()
        return len(ledger.created), len(ledger.released)

    def audit(self) -> None:
        """Assert that the ledger adds up, and that the journal has each of its creates and releases as done, once.

        Nothing may be unknown any more: a test settles what it has left unknown.
        """
        entries = self.run("journal", "list", "--limit", "1000", "--json").json
        assert [entry for entry in entries if entry["state"] in ("unknown", "in_flight")] == []
        done = [(entry["operation"], entry["id"]) for entry in entries if entry["state"] == "done"]
        created, released = (
            sorted(escrow for operation, escrow in done if operation == f"{verb}_transaction")
            for verb in ("create", "release")
        )
        ledger = self.read_ledger()
        assert (created, released) == (sorted(ledger.created), sorted(ledger.released))


class Ledger(NamedTuple):
    """The ids of the escrows whose money the sandbox has taken in, and of those whose payee has it; oldest first."""

    created: list[str]
    released: list[str]


@contextmanager
def serving_variant(variant: str, home: Path, run: Run) -> Iterator[Client]:
    """Serve the sandbox as a variant has it, with its profile as the default one."""
    chosen = [] if variant == AMNESIAC else variant.split(",")
    with serving_here(home, **dict(one.split("=") for one in chosen)) as served:
        profile = PROFILE.format(base_url=served.base_url) + "".join(MORE.get(one, "") for one in chosen)
        (home / "config.toml").write_text(profile)
        keys = home / "credentials.toml"
        keys.touch(mode=0o600)
        keys.write_text(f'[service]\norigin = "{served.base_url}"\nkey = "{served.key}"\n')
        yield Client(run, deduplicates="idempotent=on" in chosen, releases_silently="release=empty" in chosen)
