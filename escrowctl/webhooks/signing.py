"""Check whether an event comes from the service: by its signature, with the scheme that the profile names.

`standard` is Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks, spec, "Verifying webhooks"):
HMAC-SHA256 over `id.timestamp.body`, with several signatures while a secret is rotated. `hmac-sha256` signs only
the body, in one header. That signature does not cover the time, so anybody who has an old event can send it again.
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

TOLERANCE_SECONDS = 300.0
"""How many seconds a timestamp may be before or after now, as in the reference libraries."""

_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 65)
"""The allowed lengths of a secret (spec, "Signature scheme"). The library would accept a single byte."""
_TEXT_SECRET = re.compile(r"[!-~]{16,512}", re.ASCII)
_TIMESTAMP = re.compile(r"[1-9][0-9]{0,10}", re.ASCII)
_VALID_ID = re.compile(r"[!-~]{1,256}", re.ASCII)
_TIMESTAMP_IN_ID = re.compile(r"\.[1-9][0-9]{9}(?:\.|$)", re.ASCII)
"""A timestamp in an id. A signature for `a.1700000000` is valid for `a` at 1700000000 too, with a longer body."""


class SignatureError(Exception):
    """An event is not proven to come from the service. The text is a sentence without a full stop."""


class Delivery(NamedTuple):
    """A request of the sender: its headers, each a name and a value, and its body."""

    headers: tuple[tuple[str, str], ...]
    body: bytes

    def get_header(self, name: str) -> str | None:
        """Return a header's value, or None if it is missing. Raises SignatureError if there are several."""
        found = [value for key, value in self.headers if key.casefold() == name.casefold()]
        if len(found) > 1:
            raise SignatureError(f"the request has several {name} headers")
        return found[0] if found else None

    @property
    def id(self) -> str | None:
        """The sender's id of the event, the same at each attempt to deliver it; None if there is no valid id."""
        found = [value for key, value in self.headers if key.casefold() == ID]
        return found[0] if len(found) == 1 and _VALID_ID.fullmatch(found[0]) else None


class Verifier:
    """Checks deliveries with the secrets of one service. A signature by any one of the secrets is valid."""

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
        """Whether a scheme is set and a secret is known."""
        return self._header is not None and bool(self._secrets)

    @property
    def signature_covers_id(self) -> bool:
        """Whether signatures by the scheme cover the id of an event, not only its body."""
        return self._scheme == STANDARD

    def is_unsigned(self, delivery: Delivery) -> bool:
        """Whether a delivery has no signature header."""
        return all(key.casefold() != str(self._header).casefold() for key, _ in delivery.headers)

    def check(self, delivery: Delivery, *, now: datetime, tolerance: float = TOLERANCE_SECONDS) -> None:
        """Raise SignatureError unless the signature is valid.

        With `standard`, the timestamp must also be at most `tolerance` seconds before or after `now`.
        """
        if self._header is None:
            raise SignatureError("events are not signed (webhook.scheme is none)")
        received = delivery.get_header(self._header)
        if not received:
            raise SignatureError(f"the request has no header {self._header}")
        if self._scheme == STANDARD:
            expected, signatures = self._sign_with_secrets(delivery, now, tolerance), received.split(" ")
        else:
            digests = [hmac.digest(secret, delivery.body, hashlib.sha256) for secret in self._secrets]
            expected = [text for one in digests for text in (one.hex(), base64.b64encode(one).decode())]
            bare = received.removeprefix("sha256=")
            signatures = [bare, bare.lower()]
        # The time that compare_digest takes does not depend on the texts.
        pairs = itertools.product(expected, (signature.encode(errors="surrogatepass") for signature in signatures))
        if not any(hmac.compare_digest(text.encode(), signature) for text, signature in pairs):
            raise SignatureError("the signature does not match: the secret is wrong, or the body was changed")

    def _sign_with_secrets(self, delivery: Delivery, now: datetime, tolerance: float) -> list[str]:
        """Return the expected signature for each secret. Raises SignatureError for a bad id or timestamp."""
        sent_at = delivery.get_header(TIMESTAMP)
        if sent_at is None or delivery.get_header(ID) is None:
            raise SignatureError(f"the request has no header {TIMESTAMP if sent_at is None else ID}")
        if delivery.id is None:
            raise SignatureError(f"{ID} is not 1 to 256 visible ASCII characters")
        if _TIMESTAMP_IN_ID.search(delivery.id):
            raise SignatureError(f'{ID} "{delivery.id}" contains a timestamp: its signature fits two events')
        if not _TIMESTAMP.fullmatch(sent_at):
            raise SignatureError(f"{TIMESTAMP} is not a whole number of seconds since 1970")
        age = now.timestamp() - int(sent_at)
        if abs(age) > tolerance:
            age_text = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s in the future"
            raise SignatureError(f"the event is {age_text}, but at most {tolerance:.0f} s are allowed")
        return [sign(secret, delivery.id, int(sent_at), delivery.body) for secret in self._secrets]


def sign(secret: bytes, event_id: str, sent_at: int, body: bytes) -> str:
    """Return the signature of an event by Standard Webhooks, such as `v1,K5oZ...`. `sent_at` is a Unix time.

    Raises SignatureError if the body is not UTF-8, because the library signs text.
    """
    from standardwebhooks import Webhook  # noqa: PLC0415 - only a signature needs it

    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise SignatureError("the body is not UTF-8") from None
    return Webhook(secret).sign(event_id, datetime.fromtimestamp(sent_at, UTC), text)


def renew_signature(delivery: Delivery, secret: bytes, *, now: datetime) -> Delivery:
    """Return a verified delivery with the timestamp `now` and a new signature by `secret`."""
    assert delivery.id is not None, "it was verified"
    sent_at = int(now.timestamp())
    signature = sign(secret, delivery.id, sent_at, delivery.body)
    others = tuple(pair for pair in delivery.headers if pair[0].casefold() not in (TIMESTAMP, SIGNATURE))
    return delivery._replace(headers=(*others, (TIMESTAMP, str(sent_at)), (SIGNATURE, signature)))


def read_secret(text: str, scheme: str, *, source: str) -> bytes:
    """Return the signing key in the text of a secret. `source` says in an error where the text is from.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` if the secret is invalid. The message never contains the secret.
    """
    if scheme != STANDARD:
        if not _TEXT_SECRET.fullmatch(text):
            raise _bad_secret(f"the signing secret in {source} is not 16 to 512 visible ASCII characters")
        return text.encode()
    encoded = text.removeprefix(_PREFIX)
    try:
        secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _bad_secret(f"the signing secret in {source} is not {_PREFIX} followed by base64") from None
    if (size := len(secret)) not in _SECRET_BYTES:
        raise _bad_secret(f"the signing secret in {source} has {size} bytes; Standard Webhooks requires 24 to 64")
    return secret


def _bad_secret(sentence: str) -> EscrowctlError:
    return bad_config(f"{sentence}.", hint="check that the secret was copied completely")
