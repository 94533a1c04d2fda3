"""Every operation of the service's interface (interface.md section 4), as data.

Paths are relative to `{base_url}{api_prefix}`. An operation is *published* when section 4's table
lists it, *observed* when it was only seen in activity listings: its contract is not shown.
"""

from dataclasses import dataclass
from enum import StrEnum


class Access(StrEnum):
    """Whether an operation may change something at the service."""

    READ = "read"
    WRITE = "write"


class Standing(StrEnum):
    """Where an operation is known from."""

    PUBLISHED = "published"
    OBSERVED = "observed, not published"


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the interface: `path` holds `{id}` where interface.md writes `:id`."""

    name: str
    method: str
    path: str
    access: Access
    standing: Standing
    noun: str

    def fill(self, resource_id: str | None = None) -> str:
        """Return the path with its id; the id must already have passed `contract.identifiers`."""
        if "{id}" not in self.path:
            return self.path
        if resource_id is None:
            raise ValueError(f"{self.name} needs an id")
        return self.path.replace("{id}", resource_id)


CREATE_TRANSACTION = Operation(
    "create_transaction", "POST", "/transactions", Access.WRITE, Standing.PUBLISHED, "transaction"
)
GET_TRANSACTION = Operation(
    "get_transaction", "GET", "/transactions/{id}", Access.READ, Standing.PUBLISHED, "transaction"
)
RELEASE_TRANSACTION = Operation(
    "release_transaction", "PUT", "/transactions/{id}/release", Access.WRITE, Standing.PUBLISHED, "transaction"
)
LIST_TRANSACTIONS = Operation(
    "list_transactions", "GET", "/transactions", Access.READ, Standing.OBSERVED, "transaction"
)
UPDATE_TRANSACTION = Operation(
    "update_transaction", "PUT", "/transactions/{id}", Access.WRITE, Standing.OBSERVED, "transaction"
)
GET_USER = Operation("get_user", "GET", "/users/{id}", Access.READ, Standing.PUBLISHED, "user")
CREATE_WEBHOOK = Operation("create_webhook", "POST", "/webhooks", Access.WRITE, Standing.PUBLISHED, "webhook")
LIST_WEBHOOKS = Operation("list_webhooks", "GET", "/webhooks", Access.READ, Standing.PUBLISHED, "webhook")

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

DEFAULT_API_PREFIX = "/api/v1"
"""The prefix of section 4's table; section 4's example request says `/v1` (which is canonical: not shown)."""
