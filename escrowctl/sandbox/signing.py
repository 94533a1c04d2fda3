"""Signatures of Standard Webhooks 1.0.0 (symmetric: HMAC-SHA256, identifier `v1`), as a sender makes them."""

import base64
import hmac
import secrets

PREFIX = "whsec_"
SECRET_BYTES = 32


def draw_secret() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64 (the standard: 24 to 64 bytes)."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def make_headers(secret: str, *, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of one attempt.

    The signature is `v1,` and the HMAC in base64 of `id.timestamp.body`; the timestamp is in seconds since 1970.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}
