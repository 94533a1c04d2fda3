"""The service of a command, with its settings from the command line, the environment and the profile."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.config.origin import Network, Origin, parse_base_url
from escrowctl.contract.json import Number
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.record import Pointers, fold_status
from escrowctl.contract.redaction import Secret, holds_key, star_possible_key
from escrowctl.errors import bad_value

READ_TIMEOUT = 30.0
WRITE_TIMEOUT = 60.0
MAX_TIMEOUT = 3600.0

MAX_REPLY_BYTES = 1024 * 1024
"""Most bytes of a single record's reply, as sent and as decoded."""

MAX_LIST_BYTES = 64 * 1024 * 1024
"""Most bytes of a list's reply, as sent and as decoded."""

FAILED = ("failed", "declined", "rejected", "cancelled", "canceled")
"""Statuses of an escrow that was created but failed, unless the profile lists others."""

PENDING_STATUSES = ("pending", "processing", "releasing", "queued", "in_progress")
"""Statuses of a release that is accepted but not done, unless the profile lists others."""

RELEASED_ENV = "ESCROWCTL_STATUS_RELEASED"

STANDARD, HMAC_SHA256, UNSIGNED = "standard", "hmac-sha256", "none"
"""How a service may sign events: by Standard Webhooks; by HMAC-SHA256 of the body, in one header; not at all."""


class WebhookSettings(NamedTuple):
    """The service's field names for a new webhook's URL and events, and how it signs events (see `STANDARD`)."""

    url_field: str = "url"
    events_field: str = "events"
    scheme: str = STANDARD
    signature_header: str | None = None

    @property
    def field_names(self) -> frozenset[str]:
        """The names of the fields for a webhook's URL and events. The values of these fields are not secret."""
        return frozenset({self.url_field, self.events_field})


class Service(NamedTuple):
    """One service with its address, its key and the settings for requests to it.

    The journal records writes under `identity`: the profile's `service_id`, else the normalised origin. For the
    sandbox, `identity` is the id of its store. Time-outs are seconds. `idempotency` is "header" if the service
    deduplicates by Idempotency-Key, else "none". `released`, `failed` and `pending` are case-folded statuses.
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
    caps: Mapping[str, Number] = MappingProxyType({})
    account: str | None = None
    currencies: frozenset[str] = frozenset()
    reference_field: str | None = None
    idempotency: str = "none"
    retry_throttled: bool = False
    pointers: Pointers = Pointers()
    released: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset(FAILED)
    pending: frozenset[str] = frozenset(PENDING_STATUSES)
    webhooks: WebhookSettings = WebhookSettings()
    read_timeout: float = READ_TIMEOUT
    write_timeout: float = WRITE_TIMEOUT
    network: Network = Network()

    @property
    def site(self) -> str | None:
        """The origin, with `localhost` for any loopback host. None for the sandbox, which `identity` identifies."""
        if self.sandbox:
            return None
        return str(self.origin._replace(host="localhost")) if self.origin.is_loopback else str(self.origin)

    @property
    def journal_names(self) -> tuple[str, ...]:
        """The names under which the journal may have the service's writes: its identity and its site."""
        return tuple(dict.fromkeys((self.identity, self.site or self.identity)))

    def covers_url(self, url: str) -> bool:
        """Whether a URL is under this service's base URL: only then may the service's key be sent to the URL."""
        return self.sandbox or url.startswith(f"{self.origin.base_url.rstrip('/')}/")

    @property
    def deduplicates(self) -> bool:
        """Whether the service recognises a repeated Idempotency-Key, and then does not write a second time."""
        return self.idempotency == "header"

    @property
    def may_repeat_throttled(self) -> bool:
        """Whether a write that got status 425 or 429 may be sent again with the same idempotency key."""
        return self.retry_throttled or self.deduplicates

    def make_url(self, path: str) -> str:
        """Return the complete URL for the path of an operation. The id must already be in the path."""
        return f"{self.origin.base_url}{self.api_prefix}{path}"

    def refuse_key(self, *texts: str | None) -> None:
        """Raise EscrowctlError `ErrorCode.BAD_VALUE` if the API key appears in a text to send, show or store.

        contract/INTERFACE.md section 5: the key is never part of the path or body.
        """
        if any(holds_key(text, self.key.reveal()) for text in texts if text):
            raise bad_value("the API key appears in the request: remove it.")

    def refuse_key_in_names(self) -> None:
        """Raise `ErrorCode.BAD_VALUE` if the API key appears in the URL, or in `name`, `identity` or `account`."""
        self.refuse_key(self.make_url(""), self.name, self.identity, self.account)

    def is_failed(self, status: str | None) -> bool:
        """Whether this status, or its first word, means that an escrow or a release failed."""
        folded = fold_status(status or "")
        return folded in self.failed or re.split(r"[^\w-]", folded, maxsplit=1)[0] in self.failed

    def is_pending(self, status: str | None) -> bool:
        """Whether this status means that a release is accepted but not done. Case does not matter."""
        return status is not None and fold_status(status) in self.pending


def read_released(environ: Mapping[str, str]) -> list[str] | None:
    """Return the statuses in RELEASED_ENV; None if it is not set. Raises `BAD_VALUE` for an empty item."""
    text = environ.get(RELEASED_ENV)
    if text is None:
        return None
    statuses = [status.strip() for status in text.split(",")]
    if not all(statuses):
        raise bad_value(
            f'{RELEASED_ENV} "{star_possible_key(text)}" has an empty item: write statuses, such as released,paid_out.'
        )
    return statuses


def make_sandbox_service(timeout: float | None, *, identity: str, key: str, served_at: str | None) -> Service:
    """Return the built-in sandbox as a service. `timeout` is the value of `--timeout`.

    `served_at` is the URL of the `sandbox serve` process that has the store open; None if this process has.
    """
    # The host of the in-process sandbox is never resolved or connected to.
    origin = parse_base_url(served_at, source="sandbox.lock") if served_at else Origin("http", "sandbox.localhost", 80)
    return Service(
        name="sandbox",
        origin=origin,
        identity=identity,
        key=Secret(key),
        url_source="--sandbox",
        key_source="the sandbox's own store",
        live=False,
        sandbox=True,
        retry_throttled=True,
        released=frozenset({"released"}),
        read_timeout=timeout or READ_TIMEOUT,
        write_timeout=timeout or WRITE_TIMEOUT,
    )
