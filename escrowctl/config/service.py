"""The service a command talks to, every question about it answered."""

from dataclasses import dataclass, field
from pathlib import Path

from escrowctl.config.origin import Origin
from escrowctl.config.secrets import Secret
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.record import Pointers
from escrowctl.errors import bad_value

READ_TIMEOUT = 30.0
WRITE_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Network:
    """How to reach it: a CA bundle in place of the OS store, and a proxy URL; loopback has no proxy."""

    ca_bundle: Path | None = None
    proxy: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """One service under one name. `identity` is what local guards are keyed by: the normalised
    origin, the profile's `service_id`, or a sandbox store's own id. Time-outs are seconds.
    """

    name: str
    origin: Origin
    identity: str
    key: Secret
    url_source: str
    key_source: str
    live: bool
    sandbox: bool = False
    profile: str | None = None
    api_prefix: str = DEFAULT_API_PREFIX
    read_only: bool = False
    currencies: frozenset[str] = frozenset()
    reference_field: str | None = None
    webhook_url_field: str = "url"
    webhook_events_field: str = "events"
    pointers: Pointers = field(default_factory=Pointers)
    released: frozenset[str] = frozenset()
    read_timeout: float = READ_TIMEOUT
    write_timeout: float = WRITE_TIMEOUT
    network: Network = field(default_factory=Network)

    def url(self, path: str) -> str:
        """Return the whole URL of an operation's filled path."""
        return f"{self.origin.base_url}{self.api_prefix}{path}"

    def refuse_key(self, *texts: str | None) -> None:
        """Raise EscrowctlError (exit 2) where the API key stands in what is to be sent, shown or recorded.

        interface.md section 5: the key is never part of the path or body.
        """
        if any(self.key.reveal() in text for text in texts if text):
            raise bad_value("the API key stands in what is to be sent or recorded: it never belongs there.")

    def means_released(self, status: str | None) -> bool:
        """Whether the profile says that this status word means released; compared case-blind."""
        return status is not None and status.casefold() in self.released
