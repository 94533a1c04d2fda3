"""The differences between kinds of writes, one row each. The pipeline does everything that they share."""

from collections.abc import Callable
from typing import NamedTuple

from escrowctl.config.service import Service
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.contract.record import fold_status
from escrowctl.errors import ErrorCode


class WriteKind(NamedTuple):
    """One kind of write."""

    may_have: str
    """The sentence about an unknown outcome; `{id}` is replaced."""

    twice: str = "do it twice"
    """Completes "sending it again may ..."."""

    answers: tuple[str, str] = ("it was done", "it was not done")
    """The two answers that the service's support may give."""

    warning: str = ""
    """The warning above the question."""

    types_amount: bool = False
    """On a live service the amount is typed to confirm, instead of the id."""

    proving_statuses: Callable[[Service], frozenset[str]] = lambda _service: frozenset()
    """The statuses, case-folded, that prove the write when the record is read back; empty: none is known."""

    done_word: str | None = None
    """A status, case-folded, that blocks the write if no proving status is known: it suggests that it was done."""

    unconfirmed: ErrorCode = ErrorCode.CHECK_FAILED
    """The error if the service accepted the write, but the record does not show it."""

    needs_id: bool = False
    """Only an id from the service proves it."""

    conflict_is_refusal: bool = False
    """A 409 says that nothing was done. For other writes, the service may already have received this request."""

    listing: Operation | None = None
    """The list in which an unknown write may be found by its idempotency key."""

    def is_proven_by(self, status: str | None, service: Service) -> bool:
        """Whether a record's status proves that it was done; case does not matter."""
        return status is not None and fold_status(status) in self.proving_statuses(service)

    def seems_done(self, status: str | None, service: Service) -> bool:
        """Whether a record's status proves that it was done, or suggests it if no proving status is known."""
        if status is None or self.proving_statuses(service):
            return self.is_proven_by(status, service)
        return fold_status(status) == self.done_word


KINDS = {
    CREATE_TRANSACTION.name: WriteKind(
        may_have="The escrow may or may not exist.",
        twice="hold the money twice",
        answers=("it exists", "it does not exist"),
        needs_id=True,
        listing=LIST_TRANSACTIONS,
    ),
    RELEASE_TRANSACTION.name: WriteKind(
        may_have="{id} may or may not be released.",
        answers=("it was released", "it was not released"),
        warning="A release cannot be undone.",
        types_amount=True,
        proving_statuses=lambda service: service.released,
        done_word=RELEASE_TRANSACTION.done,
        unconfirmed=ErrorCode.NOT_RELEASED,
    ),
    UPDATE_TRANSACTION.name: WriteKind(
        may_have="{id} may or may not be updated.",
        warning="The service does not document what an update does. It may release the escrow.",
        conflict_is_refusal=True,
    ),
    CREATE_WEBHOOK.name: WriteKind(
        may_have="The endpoint may or may not be registered.",
        answers=("it exists", "it does not exist"),
        listing=LIST_WEBHOOKS,
    ),
}

_RAW = WriteKind(may_have="The call may or may not have been carried out.")


def kind_of(operation: str) -> WriteKind:
    """Return the row of an operation by its name; calls outside of the interface share one."""
    return KINDS.get(operation, _RAW)
