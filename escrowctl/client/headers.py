"""The headers of a request: the two of the contract, and those that make it traceable.

interface.md section 5: every request carries `Authorization: Bearer <API_KEY>`; requests with a
body carry `Content-Type: application/json`. The rest is ours: identity encoding is asked for so
that replies can be read in bounded steps, and a write carries an Idempotency-Key, which promises
nothing where the service does not.
"""

from escrowctl import __version__
from escrowctl.client.exchange import JSON_TYPE
from escrowctl.config.secrets import Secret
from escrowctl.contract.key_search import STARS

USER_AGENT = f"escrowctl/{__version__}"
_SECRET_NAMES = frozenset({"authorization"})


def make_headers(
    key: Secret, *, request_id: str, has_body: bool, idempotency_key: str | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the headers of one request, in the order in which they go out."""
    headers = [
        ("Authorization", f"Bearer {key.reveal()}"),
        ("Accept", JSON_TYPE),
        ("Accept-Encoding", "identity"),
        ("User-Agent", USER_AGENT),
        ("X-Request-Id", request_id),
    ]
    if has_body:
        headers.append(("Content-Type", JSON_TYPE))
    if idempotency_key is not None:
        headers.append(("Idempotency-Key", idempotency_key))
    return tuple(headers)


def redact(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the headers as they may be shown."""
    return tuple((name, f"Bearer {STARS}" if name.lower() in _SECRET_NAMES else value) for name, value in headers)
