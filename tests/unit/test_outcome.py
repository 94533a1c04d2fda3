"""What an exchange proves about a write, beyond the statuses: bytes that left, attempts, and bodies."""

import pytest

from escrowctl.client.http import Answer, Exchange, Fault
from escrowctl.contract.json import Defect
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, UPDATE_TRANSACTION, Operation
from escrowctl.errors import ErrorCode, Outcome
from escrowctl.writes.outcome import SentRequest, judge_write

WRITES = pytest.mark.parametrize(
    "operation", [CREATE_TRANSACTION, RELEASE_TRANSACTION, UPDATE_TRANSACTION], ids=lambda operation: operation.name
)


@WRITES
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_write_without_a_reply_is_judged_by_sent_bytes(fault: Fault, operation: Operation) -> None:
    left = judge_write(operation, Exchange(sent=True, fault=fault), sent=SentRequest())
    stayed = judge_write(operation, Exchange(sent=False, fault=fault), sent=SentRequest())

    assert (left.outcome, left.may_repeat) == (Outcome.UNKNOWN, False)
    assert stayed.outcome is Outcome.NOT_SENT


@WRITES
def test_an_interim_status_that_ends_an_exchange_proves_nothing(operation: Operation) -> None:
    found = {
        judge_write(operation, Exchange(sent=True, answer=Answer(status, (), b"")), sent=SentRequest()).outcome
        for status in (*range(100, 200), *range(600, 1000))
    }

    assert found == {Outcome.UNKNOWN}


@WRITES
def test_only_refusals_before_processing_may_be_repeated(operation: Operation) -> None:
    repeatable = {
        status
        for status in range(200, 600)
        if judge_write(operation, Exchange(sent=True, answer=Answer(status, (), b"")), sent=SentRequest()).may_repeat
    }

    assert repeatable == {425, 429}


@WRITES
def test_conflict_of_any_write_but_update_proves_nothing(operation: Operation) -> None:
    found = judge_write(operation, Exchange(sent=True, answer=Answer(409, (), b"")), sent=SentRequest())

    refused = operation is UPDATE_TRANSACTION
    assert (found.outcome, found.code) == (Outcome.REFUSED if refused else Outcome.UNKNOWN, ErrorCode.CONFLICT)


@WRITES
@pytest.mark.parametrize("defect", [Defect.CUT_SHORT, Defect.OVER_LIMIT, Defect.BAD_ENCODING])
def test_incomplete_body_leaves_a_success_unknown_and_a_refusal_refused(defect: Defect, operation: Operation) -> None:
    success = Answer(200, (), b'{"id":"tx_1"}', defect)
    refusal = Answer(422, (), b'{"deta', defect)

    assert judge_write(operation, Exchange(sent=True, answer=success), sent=SentRequest()).outcome is Outcome.UNKNOWN
    assert judge_write(operation, Exchange(sent=True, answer=refusal), sent=SentRequest()).outcome is Outcome.REFUSED
