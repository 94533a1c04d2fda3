"""Whether an event comes from the service: its signature, by the scheme that the profile names.

`standard` is Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks, spec, "Verifying webhooks"):
HMAC-SHA256 over `id.timestamp.body`, with several signatures while a secret is rotated. `hmac-sha256` signs the
body alone, in one header. It does not cover the time, so an old event can be sent again.
"""

import base64
import binascii
import hashlib
import hmac
import itertools
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from escrowctl.config.service import HMAC_SHA256, STANDARD, WebhookSettings
from escrowctl.errors import EscrowctlError, bad_config

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
"""The headers of Standard Webhooks."""

TOLERANCE = 300.0
"""Seconds that a timestamp may be away from now, before or after, as in the reference libraries."""

_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 65)
"""Allowed lengths of a secret (spec, "Signature scheme"). The library would accept a single byte."""
_TEXT_SECRET = re.compile(r"[!-~]{16,512}", re.ASCII)
_TIMESTAMP = re.compile(r"[1-9][0-9]{0,10}", re.ASCII)
_VISIBLE = re.compile(r"[!-~]{1,256}", re.ASCII)
_INNER_TIME = re.compile(r"\.[1-9][0-9]{9}(?:\.|$)", re.ASCII)
"""A timestamp in an id. The id `a.1700000000` has the same signature as `a`, sent then, with a longer body."""


class SignatureError(Exception):
    """An event that is not proven to come from the service; the text is a sentence without its full stop."""


class Delivery(NamedTuple):
    """A request of the sender: headers as names and values, and the bytes of the body."""

    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return a header's value; None if it is missing. Raises SignatureError if it is there twice."""
        found = [value for key, value in self.headers if key.casefold() == name.casefold()]
        if len(found) > 1:
            raise SignatureError(f"there are {len(found)} headers {name}")
        return found[0] if found else None

    @property
    def id(self) -> str | None:
        """The sender's id of the event, the same at each attempt to deliver it; None if there is no valid one."""
        found = [value for key, value in self.headers if key.casefold() == ID]
        return found[0] if len(found) == 1 and _VISIBLE.fullmatch(found[0]) else None


class Verifier:
    """Checks deliveries with the secrets of one service; any of them may match."""

    def __init__(self, webhooks: WebhookSettings, secrets: Sequence[bytes]) -> None:
        """Take secrets as `read_secret` returns them.

        Raises EscrowctlError `ErrorCode.BAD_CONFIG` if the scheme needs a header but none is set.
        """
        self._header = {STANDARD: SIGNATURE, HMAC_SHA256: webhooks.signature_header}.get(webhooks.scheme)
        if webhooks.scheme == HMAC_SHA256 and self._header is None:
            raise bad_config("webhook.scheme is hmac-sha256, but webhook.signature_header is not set.")
        self._scheme = webhooks.scheme
        self._secrets = secrets

    @property
    def can_verify(self) -> bool:
        """Whether there is a scheme, and a secret for it."""
        return self._header is not None and bool(self._secrets)

    @property
    def signs_id(self) -> bool:
        """Whether the signature also covers the id of an event."""
        return self._scheme == STANDARD

    def is_unsigned(self, delivery: Delivery) -> bool:
        """Whether a delivery has no signature, neither right nor wrong."""
        return all(key.casefold() != str(self._header).casefold() for key, _ in delivery.headers)

    def check(self, delivery: Delivery, *, now: datetime, tolerance: float = TOLERANCE) -> None:
        """Raise SignatureError unless the signature is valid; by `standard`, at most `tolerance` s old or early."""
        if self._header is None:
            raise SignatureError("events are not signed (webhook.scheme is none)")
        given = delivery.header(self._header)
        if not given:
            raise SignatureError(f"there is no header {self._header}")
        if self._scheme == STANDARD:
            expected, signatures = self._standard(delivery, now, tolerance), given.split(" ")
        else:
            digests = [hmac.digest(secret, delivery.body, hashlib.sha256) for secret in self._secrets]
            expected = [text for one in digests for text in (one.hex(), base64.b64encode(one).decode())]
            bare = given.removeprefix("sha256=")
            signatures = [bare, bare.lower()]
        # The time that compare_digest takes does not depend on the texts.
        pairs = itertools.product(expected, (signature.encode(errors="surrogatepass") for signature in signatures))
        if not any(hmac.compare_digest(text.encode(), signature) for text, signature in pairs):
            raise SignatureError("the signature does not match (another secret, or a changed body)")

    def _standard(self, delivery: Delivery, now: datetime, tolerance: float) -> list[str]:
        """Return the signature by each secret."""
        sent_at = delivery.header(TIMESTAMP)
        if sent_at is None or delivery.header(ID) is None:
            raise SignatureError(f"there is no header {ID if sent_at is not None else TIMESTAMP}")
        if delivery.id is None:
            raise SignatureError(f"{ID} is not 1 to 256 visible ASCII characters")
        if _INNER_TIME.search(delivery.id):
            raise SignatureError(f'{ID} "{delivery.id}" contains a timestamp: its signature fits another event too')
        if not _TIMESTAMP.fullmatch(sent_at):
            raise SignatureError(f"{TIMESTAMP} is not a whole number of seconds since 1970")
        age = now.timestamp() - int(sent_at)
        if abs(age) > tolerance:
            when = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s in the future"
            raise SignatureError(f"the event is {when}, more than {tolerance:.0f} s")
        return [sign(secret, delivery.id, int(sent_at), delivery.body) for secret in self._secrets]


def sign(secret: bytes, event_id: str, sent_at: int, body: bytes) -> str:
    """Return the signature of an event by Standard Webhooks, such as `v1,K5oZ...`; `sent_at` is a Unix time.

    Raises SignatureError for a body that is not UTF-8: the library signs text.
    """
    from standardwebhooks import Webhook  # noqa: PLC0415 - for who checks a signature

    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise SignatureError("the body is not UTF-8") from None
    return Webhook(secret).sign(event_id, datetime.fromtimestamp(sent_at, UTC), text)


def sign_again(delivery: Delivery, secret: bytes, *, now: datetime) -> Delivery:
    """Return a verified delivery as its sender would send it now: another timestamp and signature, the same id and
    body.
    """
    assert delivery.id is not None, "it was verified"
    sent_at = int(now.timestamp())
    signature = sign(secret, delivery.id, sent_at, delivery.body)
    others = tuple(pair for pair in delivery.headers if pair[0].casefold() not in (TIMESTAMP, SIGNATURE))
    return delivery._replace(headers=(*others, (TIMESTAMP, str(sent_at)), (SIGNATURE, signature)))


def read_secret(text: str, scheme: str, *, source: str) -> bytes:
    """Return a secret as the key of its signatures; `source` names the origin of the text.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` for an invalid secret, which the message never quotes.
    """
    if scheme != STANDARD:
        if not _TEXT_SECRET.fullmatch(text):
            raise _unusable(source, "is not 16 to 512 visible ASCII characters")
        return text.encode()
    encoded = text.removeprefix(_PREFIX)
    try:
        secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _unusable(source, f"is not {_PREFIX} and base64") from None
    if len(secret) not in _SECRET_BYTES:
        raise _unusable(source, f"has the length {len(secret)}: Standard Webhooks asks for 24 to 64 bytes")
    return secret


def _unusable(source: str, why: str) -> EscrowctlError:
    return bad_config(f"the signing secret in {source} {why}.", hint="check that it was copied completely")
