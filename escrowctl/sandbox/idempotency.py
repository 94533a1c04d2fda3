"""The variant that recognises an Idempotency-Key: the same request again gets the first reply, and does nothing.

As the expired IETF draft (draft-ietf-httpapi-idempotency-key-header-07) has it: 422 for another request under the
same key. Refusals are not stored: nothing was done.
"""

import sqlite3
from hashlib import sha256

from escrowctl.sandbox.bodies import JsonObject, ProblemError, ProblemKind, read_stored, write_json
from escrowctl.sandbox.http import Call

_FIND = "SELECT request, reply FROM replies WHERE key = ?"
_ADD = "INSERT INTO replies (key, request, reply) VALUES (?, ?, ?)"


def find_reply(connection: sqlite3.Connection, call: Call) -> JsonObject | None:
    """Return the reply to the same write before, or None; 422 if its key belongs to another one."""
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
