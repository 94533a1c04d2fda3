"""Every operation of the service's interface (INTERFACE.md section 4), as data.

Paths are relative to `{base_url}{api_prefix}`. An operation is *published* if section 4's table lists it, *observed* if
it was only seen in activity listings: its contract is not shown. `escrowctl api` can call other paths too: they are
*foreign*.
"""

from enum import StrEnum
from typing import NamedTuple


class Standing(StrEnum):
    """The source that an operation is known from."""

    PUBLISHED = "published"
    OBSERVED = "the service does not document it"
    FOREIGN = "not in the interface"


READING_METHODS = frozenset({"GET"})
"""The methods that `api` sends and that only read (RFC 9110 section 9.2.1)."""


class Operation(NamedTuple):
    """One row of the interface: `path` holds `{id}` in the place of INTERFACE.md's `:id`.

    `verb` is its name in a sentence ("the create was sent"). `done`, only for writes of the interface, completes "it
    was ...".
    """

    name: str
    verb: str
    method: str
    path: str
    noun: str
    done: str = ""
    standing: Standing = Standing.PUBLISHED
    once_only: bool = False
    """Whether doing it twice is always wrong; an identical create or update may be intended."""

    @property
    def is_write(self) -> bool:
        """Whether it may change something at the service."""
        return self.method not in READING_METHODS

    @property
    def makes_record(self) -> bool:
        """Whether it creates a record whose id only the reply has."""
        return self.name.startswith("create_")

    @property
    def is_confidential(self) -> bool:
        """Whether its bodies may hold a secret: those about transactions and users do not."""
        return self.standing is Standing.FOREIGN or self.noun == "webhook"

    def fill(self, resource_id: str | None = None) -> str:
        """Return the path with its id; the id must already have passed `contract.identifiers`."""
        if "{id}" not in self.path:
            return self.path
        if resource_id is None:
            raise ValueError(f"{self.name} needs an id")
        return self.path.replace("{id}", resource_id)


CREATE_TRANSACTION = Operation("create_transaction", "create", "POST", "/transactions", "transaction", "created")
GET_TRANSACTION = Operation("get_transaction", "get", "GET", "/transactions/{id}", "transaction")
RELEASE_TRANSACTION = Operation(
    "release_transaction", "release", "PUT", "/transactions/{id}/release", "transaction", "released", once_only=True
)
LIST_TRANSACTIONS = Operation(
    "list_transactions", "list", "GET", "/transactions", "transaction", standing=Standing.OBSERVED
)
UPDATE_TRANSACTION = Operation(
    "update_transaction", "update", "PUT", "/transactions/{id}", "transaction", "updated", Standing.OBSERVED
)
GET_USER = Operation("get_user", "get", "GET", "/users/{id}", "user")
CREATE_WEBHOOK = Operation("create_webhook", "webhook creation", "POST", "/webhooks", "webhook", "registered")
LIST_WEBHOOKS = Operation("list_webhooks", "list", "GET", "/webhooks", "webhook")

OPERATIONS: tuple[Operation, ...] = (
    CREATE_TRANSACTION,
    GET_TRANSACTION,
    RELEASE_TRANSACTION,
    LIST_TRANSACTIONS,
    UPDATE_TRANSACTION,
    GET_USER,
    CREATE_WEBHOOK,
    LIST_WEBHOOKS,
)


def make_foreign(method: str, path: str) -> Operation:
    """Return a call that the interface does not know; `path` without an id in braces."""
    return Operation(f"call_{method.lower()}", "call", method, path, "record", standing=Standing.FOREIGN)


BY_NAME = {operation.name: operation for operation in OPERATIONS}
"""Operation name -> its row; foreign operations have none."""

DEFAULT_API_PREFIX = "/api/v1"
"""The prefix of section 4's table; section 4's example request says `/v1` (which is canonical: not shown)."""

API_PREFIXES = (DEFAULT_API_PREFIX, "/v1")
"""Both prefixes of section 4."""
