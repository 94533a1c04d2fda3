"""The differences between kinds of writes, one `WriteKind` each. `writes.pipeline` has what all kinds share."""

from escrowctl.config.service import PENDING_STATUSES, Service
from escrowctl.contract.json import JsonValue
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


class WriteKind:
    """The facts in which one kind of write differs from the others. As they are here, they are those of a raw call."""

    unknown_sentence: str = "The call may or may not have been carried out."
    """The sentence that follows if the outcome is unknown; `{id}` is replaced by the id of the record."""

    repeat_risk: str = "do it twice"
    """The risk of sending the write again; completes "the service may ..."."""

    support_answers: tuple[str, str] = ("it was done", "it was not done")
    """The two answers of the service's support; each completes "if the service's support says that ..."."""

    warning: str = ""
    """The warning above the question for confirmation; empty: none."""

    types_amount: bool = False
    """Whether the operator types the amount to confirm on a live service, instead of the id."""

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

    def proving_statuses(self, service: Service) -> frozenset[str]:  # noqa: ARG002 - a release needs it
        """Return the case-folded statuses that prove the write when its record is read; empty: none is known."""
        return frozenset()

    def is_proven_by(self, status: str | None, service: Service) -> bool:
        """Whether this status of a record proves that the write was done; case does not matter."""
        return status is not None and fold_status(status) in self.proving_statuses(service)

    def is_pending(self, _status: str | None, _service: Service) -> bool:
        """Whether this status, read after the write, means that the service accepted the write but has not done it."""
        return False

    def is_in_progress(self, status: str | None, service: Service) -> bool:
        """Like `is_pending`, for a status read before the write. "pending" does not count: it may mean held."""
        return self.is_pending(status, service) and fold_status(status or "") != PENDING_STATUSES[0]

    def is_failed(self, status: str | None, service: Service) -> bool:
        """Whether this status of a record means that the write failed. A status that proves the write does not."""
        return service.is_failed(status) and not self.is_proven_by(status, service)

    def seems_done(self, status: str | None, service: Service) -> bool:
        """Whether a record's status proves that the write is done, or suggests it if no proving status is known."""
        if status is None or self.proving_statuses(service):
            return self.is_proven_by(status, service)
        return fold_status(status) == self.done_status

    def is_capped(self, _body: JsonValue) -> bool:
        """Whether the profile's caps apply to a write with this body. If the amount is not known, they refuse it."""
        return True


class _Create(WriteKind):
    unknown_sentence = "The escrow may or may not exist."
    repeat_risk = "hold the money twice"
    support_answers = ("it exists", "it does not exist")
    needs_id = True
    listing = LIST_TRANSACTIONS


class _Release(WriteKind):
    unknown_sentence = "{id} may or may not be released."
    support_answers = ("it was released", "it was not released")
    warning = "A release cannot be undone."
    types_amount = True
    done_status = RELEASE_TRANSACTION.done
    unconfirmed_code = ErrorCode.NOT_RELEASED

    def proving_statuses(self, service: Service) -> frozenset[str]:
        return service.released

    def is_pending(self, status: str | None, service: Service) -> bool:
        return service.is_pending(status)


class _Update(WriteKind):
    unknown_sentence = "{id} may or may not be updated."
    warning = "The service does not document what an update does. It may release the escrow."
    conflict_is_refusal = True

    def is_capped(self, body: JsonValue) -> bool:
        return _may_set_amount(body)


class _Registration(WriteKind):
    unknown_sentence = "The endpoint may or may not be registered."
    support_answers = ("it exists", "it does not exist")
    listing = LIST_WEBHOOKS

    def is_capped(self, _body: JsonValue) -> bool:
        return False


_KINDS: dict[str, WriteKind] = {
    CREATE_TRANSACTION.name: _Create(),
    RELEASE_TRANSACTION.name: _Release(),
    UPDATE_TRANSACTION.name: _Update(),
    CREATE_WEBHOOK.name: _Registration(),
}


def kind_of(operation: str) -> WriteKind:
    """Return the kind of an operation, by its name. All operations outside of the interface share one kind."""
    return _KINDS.get(operation) or WriteKind()


def _may_set_amount(body: JsonValue) -> bool:
    """Whether the name of a field at any depth contains "amount", in any case."""
    match body:
        case dict():
            return any("amount" in key.casefold() or _may_set_amount(item) for key, item in body.items())
        case list():
            return any(_may_set_amount(item) for item in body)
        case _:
            return False
