"""The user operation of the interface: get."""

from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.calls import Call
from escrowctl.sandbox.problems import no_record
from escrowctl.sandbox.records import find_user
from escrowctl.sandbox.store import Store


class Users:
    """Answers for users. Who may read whom is not shown (interface.md section 5): here any valid key may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, call: Call) -> JsonObject:
        """Return one record; 404 if there is none."""
        with self._store.reading() as connection:
            user = find_user(connection, call.resource_id)
        if user is None:
            raise no_record("user", call.resource_id)
        return user.document()
