"""A sender of events that shares nothing with escrowctl: Standard Webhooks by the standard library alone."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import time
from typing import Any

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()


def sign(event_id: str, sent_at: int, body: bytes, key: bytes = KEY) -> str:
    """Return the signature, as the specification has it."""
    content = f"{event_id}.{sent_at}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def headers_of(event_id: str, body: bytes, *, sent_at: int | None = None, key: bytes = KEY) -> dict[str, str]:
    """Return the headers of an event that is sent now."""
    at = int(time.time()) if sent_at is None else sent_at
    return {"webhook-id": event_id, "webhook-timestamp": str(at), "webhook-signature": sign(event_id, at, body, key)}


def body_of(number: int, kind: str = "transaction.released", status: str = "released") -> bytes:
    document: dict[str, Any] = {"type": kind, "data": {"id": f"tx_{number}", "status": status, "amount": 100.50}}
    return json.dumps(document).encode()


def post(port: int, body: bytes, headers: dict[str, str], *, method: str = "POST", path: str = "/hooks") -> int:
    """Send one request and return the status."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, body, headers)
        return connection.getresponse().status


def send(port: int, number: int) -> int:
    """Send the event `msg_NUMBER`, and return the status."""
    body = body_of(number)
    return post(port, body, headers_of(f"msg_{number}", body) | {"Content-Type": "application/json"})
