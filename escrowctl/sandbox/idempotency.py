"""The variant that recognises an Idempotency-Key: a repeated request gets the first reply, and changes nothing.

Another request under the same key gets 422, as in the expired IETF draft
draft-ietf-httpapi-idempotency-key-header-07. Refusals are not stored: they changed nothing.
"""

import sqlite3
from hashlib import sha256

from escrowctl.sandbox.bodies import JsonObject, ProblemError, ProblemKind, read_stored, write_json
from escrowctl.sandbox.http import Call

_FIND = "SELECT request, reply FROM replies WHERE key = ?"
_ADD = "INSERT INTO replies (key, request, reply) VALUES (?, ?, ?)"


def find_reply(connection: sqlite3.Connection, call: Call) -> JsonObject | None:
    """Return the stored reply to the same write, or None. Raises ProblemError 422 if another write had the key."""
    if not call.idempotency_key:
        return None
    row = connection.execute(_FIND, (call.idempotency_key,)).fetchone()
    if row is None:
        return None
    if row["request"] != _describe(call):
        raise ProblemError(ProblemKind.KEY_REUSED, "This Idempotency-Key was sent with another request before.")
    return read_stored(row["reply"])


def add_reply(connection: sqlite3.Connection, call: Call, reply: JsonObject) -> None:
    """Store the reply to a write, in the write's own transaction."""
    if call.idempotency_key:
        connection.execute(_ADD, (call.idempotency_key, _describe(call), write_json(reply)))


def _describe(call: Call) -> str:
    return sha256(f"{call.resource_id}\n".encode() + call.body).hexdigest()
