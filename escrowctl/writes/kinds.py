"""The differences between kinds of writes, one `WriteKind` each. `writes.pipeline` has what all kinds share."""

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
    """The facts in which one kind of write differs from the others."""

    unknown_sentence: str
    """The sentence that follows if the outcome is unknown; `{id}` is replaced by the id of the record."""

    repeat_risk: str = "do it twice"
    """The risk of sending the write again; completes "the service may ..."."""

    support_answers: tuple[str, str] = ("it was done", "it was not done")
    """The two answers of the service's support; each completes "if the service's support says that ..."."""

    warning: str = ""
    """The warning above the question for confirmation; empty: none."""

    types_amount: bool = False
    """Whether the operator types the amount to confirm on a live service, instead of the id."""

    proving_statuses: Callable[[Service], frozenset[str]] = lambda _service: frozenset()
    """Returns the case-folded statuses that prove the write when its record is read; empty: none is known."""

    done_status: str | None = None
    """The case-folded status that suggests that the write is done. It counts only if no proving status is known."""

    unconfirmed_code: ErrorCode = ErrorCode.CHECK_FAILED
    """The code of the error if the service accepted the write, but the record does not show the write."""

    needs_id: bool = False
    """Whether only an id from the service proves the write."""

    conflict_is_refusal: bool = False
    """Whether a 409 proves that nothing was done. For other kinds, the request may have arrived twice."""

    listing: Operation | None = None
    """The list of the service in which the result of an unknown write may be found; None: there is no such list."""

    def is_proven_by(self, status: str | None, service: Service) -> bool:
        """Whether this status of a record proves that the write was done; case does not matter."""
        return status is not None and fold_status(status) in self.proving_statuses(service)

    def seems_done(self, status: str | None, service: Service) -> bool:
        """Whether a record's status proves that the write is done, or suggests it if no proving status is known."""
        if status is None or self.proving_statuses(service):
            return self.is_proven_by(status, service)
        return fold_status(status) == self.done_status


KINDS = {
    CREATE_TRANSACTION.name: WriteKind(
        unknown_sentence="The escrow may or may not exist.",
        repeat_risk="hold the money twice",
        support_answers=("it exists", "it does not exist"),
        needs_id=True,
        listing=LIST_TRANSACTIONS,
    ),
    RELEASE_TRANSACTION.name: WriteKind(
        unknown_sentence="{id} may or may not be released.",
        support_answers=("it was released", "it was not released"),
        warning="A release cannot be undone.",
        types_amount=True,
        proving_statuses=lambda service: service.released,
        done_status=RELEASE_TRANSACTION.done,
        unconfirmed_code=ErrorCode.NOT_RELEASED,
    ),
    UPDATE_TRANSACTION.name: WriteKind(
        unknown_sentence="{id} may or may not be updated.",
        warning="The service does not document what an update does. It may release the escrow.",
        conflict_is_refusal=True,
    ),
    CREATE_WEBHOOK.name: WriteKind(
        unknown_sentence="The endpoint may or may not be registered.",
        support_answers=("it exists", "it does not exist"),
        listing=LIST_WEBHOOKS,
    ),
}

_RAW_CALL = WriteKind(unknown_sentence="The call may or may not have been carried out.")


def kind_of(operation: str) -> WriteKind:
    """Return the kind of an operation, by its name. All operations outside of the interface share one kind."""
    return KINDS.get(operation, _RAW_CALL)
