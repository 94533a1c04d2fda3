"""Every operation of the service's interface (INTERFACE.md section 4), as data.

Paths are relative to `{base_url}{api_prefix}`. An operation is *published* if the service's document states it, and
*observed* if it was only seen in listings of past calls: its contract is not shown. A call that `escrowctl api`
sends to any other path is *raw*.
"""

import re
from enum import StrEnum
from typing import NamedTuple


class Provenance(StrEnum):
    """How an operation is known."""

    PUBLISHED = "published"
    OBSERVED = "the service does not document it"
    RAW = "not in the interface"


READING_METHODS = frozenset({"GET"})
"""The methods of `api` that only read (RFC 9110 section 9.2.1)."""


class Operation(NamedTuple):
    """One operation of the service. INTERFACE.md's `:id` is `{id}` in `path`.

    `verb` names the operation in a sentence ("the create was sent"). `done` completes "the record was ..."; it is
    empty for reads and raw calls. `noun` is the kind of record.
    """

    name: str
    verb: str
    method: str
    path: str
    noun: str
    done: str = ""
    provenance: Provenance = Provenance.PUBLISHED
    is_once_only: bool = False
    """Whether a record gets only one of the operations with this mark, and only once. An identical create may be
    intended."""

    @property
    def is_write(self) -> bool:
        """Whether the operation may change something at the service."""
        return self.method not in READING_METHODS

    @property
    def word(self) -> str:
        """The operation's name in options (`--operation release`, `fault.release=500`): one word, in no other row."""
        if self.noun == "transaction":
            return self.verb
        return f"{self.noun}s" if self.verb == "list" else self.noun

    @property
    def command(self) -> str:
        """The command that calls the operation, such as `tx release` or `webhook create`."""
        return f"{'tx' if self.noun == 'transaction' else self.noun} {self.name.partition('_')[0]}"

    @property
    def creates_record(self) -> bool:
        """Whether the operation creates a record. Only the reply has the new id."""
        return self.name.startswith("create_")

    @property
    def is_confidential(self) -> bool:
        """Whether the bodies of the operation may hold a secret. Bodies about transactions and users hold none."""
        return self.provenance is Provenance.RAW or self.noun == "webhook"

    def fill_path(self, resource_id: str | None = None) -> str:
        """Return the path with the id filled in. The id must have passed `contract.identifiers.parse_id`."""
        if resource_id is None and "{id}" in self.path:
            raise ValueError(f"{self.name} needs an id")
        return self.path.replace("{id}", resource_id or "")


CREATE_TRANSACTION = Operation("create_transaction", "create", "POST", "/transactions", "transaction", "created")
GET_TRANSACTION = Operation("get_transaction", "get", "GET", "/transactions/{id}", "transaction")
RELEASE_TRANSACTION = Operation(
    "release_transaction", "release", "PUT", "/transactions/{id}/release", "transaction", "released", is_once_only=True
)
LIST_TRANSACTIONS = Operation(
    "list_transactions", "list", "GET", "/transactions", "transaction", provenance=Provenance.OBSERVED
)
UPDATE_TRANSACTION = Operation(
    "update_transaction", "update", "PUT", "/transactions/{id}", "transaction", "updated", Provenance.OBSERVED
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


def make_raw_operation(method: str, path: str) -> Operation:
    """Return an operation for a call that INTERFACE.md does not have. `path` is complete and has no `{id}`."""
    return Operation(f"call_{method.lower()}", "call", method, path, "record", provenance=Provenance.RAW)


def match_path(template: str, path: str) -> re.Match[str] | None:
    """Return the match of a path with a template such as `/users/{id}`, or None. The group `id` has the id."""
    return re.fullmatch(re.escape(template).replace(r"\{id\}", "(?P<id>[^/]+)"), path)


WRITES = tuple(operation for operation in OPERATIONS if operation.is_write)

OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS}
"""Name -> operation. Raw operations are not in it."""

DEFAULT_API_PREFIX = "/api/v1"
"""The prefix in section 4's table. The example request of section 4 has `/v1`: the document is not consistent."""

API_PREFIXES = (DEFAULT_API_PREFIX, "/v1")
"""Both prefixes of section 4."""
