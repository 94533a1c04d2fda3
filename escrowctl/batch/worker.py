"""The work for a row outside of the journal's process: read a release's record, send the row, judge the reply."""

import traceback
from typing import NamedTuple

from escrowctl.client.connection import Connection
from escrowctl.client.http import Evidence, Exchange, Fault
from escrowctl.client.reader import Reader
from escrowctl.client.retry import Retry, find_retry_after
from escrowctl.config.service import Service
from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.model import Entry, Settlement, State
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.create import prove_create
from escrowctl.writes.inspection import RecordOptions, inspect_target
from escrowctl.writes.outcome import judge_stored_reply
from escrowctl.writes.read_back import ReadBack
from escrowctl.writes.requests import WriteRequest
from escrowctl.writes.result import WriteResult
from escrowctl.writes.writer import Sender


class Job(NamedTuple):
    """The work for one row. Without an `entry`, the record of `request` is read; with one, the request is sent.

    `before` is the record as read before the write. `may_be_applied`: an earlier attempt may have been applied.
    `is_last`: this is the last automatic attempt, so a read may settle the write.
    """

    line: int
    request: WriteRequest
    options: RecordOptions
    entry: Entry | None = None
    before: KnownFields | None = None
    may_be_applied: bool = False
    is_last: bool = False


class JobResult(NamedTuple):
    """The result of a job.

    A read gives the `record`, or the code and the message of the `failure` that keeps the row from being sent. A
    write gives the `settlement` to record. `may_go_again`: the write may be sent again. `is_misdirected`: the reply
    was to a different write. `requested_wait` is the wait in seconds that the service asked for. `is_untouched`:
    the job was recalled before it began. `defect` is the traceback of an internal error of escrowctl.
    """

    line: int
    record: KnownFields | None = None
    failure: tuple[ErrorCode, str] | None = None
    settlement: Settlement | None = None
    may_go_again: bool = False
    is_misdirected: bool = False
    requested_wait: float | None = None
    is_untouched: bool = False
    defect: str = ""


class Worker:
    """Does one job at a time, over its own connection, in one thread."""

    def __init__(self, service: Service, connection: Connection, runtime: Runtime) -> None:
        self._service = service
        self._runtime = runtime
        self._signals = Signals()
        self._defects: list[BaseException] = []
        self._sender = Sender(service, connection, report_defect=self._defects.append)
        retry = Retry(runtime, self._signals, lambda _: None)
        self._reader = Reader(service, connection, retry, runtime, self._signals)

    def do(self, job: Job) -> JobResult:
        """Return the result of a job; never raises."""
        try:
            found = self._write(job, job.entry) if job.entry is not None else self._inspect_record(job)
        except Exception as error:  # noqa: BLE001 - the journal's process must get a result for every row
            self._defects.append(error)
            found = _make_defect_result(job, error)
        if self._defects:
            found = found._replace(defect="".join(traceback.format_exception(self._defects.pop())))
            self._defects.clear()
        return found

    def _inspect_record(self, job: Job) -> JobResult:
        try:
            found = inspect_target(
                self._reader, self._service, job.request, job.options, may_be_done=job.may_be_applied
            )
            return JobResult(job.line, record=found)
        except EscrowctlError as error:
            return JobResult(job.line, failure=(error.code, error.message))

    def _write(self, job: Job, entry: Entry) -> JobResult:
        exchange = self._send(entry, job.request)
        result = self._sender.judge(entry, job.request, exchange, may_be_applied=job.may_be_applied)
        found = JobResult(
            job.line,
            settlement=result.sent_entry.settlement,
            may_go_again=self._sender.may_send_again(exchange),
            is_misdirected=exchange.fault is Fault.MISDIRECTED,
            requested_wait=find_retry_after(exchange.answer, now=self._runtime.now()),
        )
        if found.may_go_again and not job.is_last:
            return found
        if job.request.operation.is_once_only:
            return self._read_back(job, found, result._replace(before=job.before))
        # A create that was only accepted (202) is read.
        sent = result.sent_entry
        stored = judge_stored_reply(self._service, sent) if sent.state is State.UNKNOWN else None
        proof = prove_create(sent, stored, self._service, self._reader) if stored and stored.result_id else None
        return found._replace(settlement=proof.sent_entry.settlement) if proof else found

    def _send(self, entry: Entry, request: WriteRequest) -> Exchange:
        evidence = Evidence()
        try:
            return self._sender.send(entry, request, evidence)
        except Exception as error:  # noqa: BLE001 - only the evidence that a byte left decides the outcome
            self._defects.append(error)
            return Exchange(evidence.sent, fault=Fault.DEFECT, detail=type(error).__name__)

    def _read_back(self, job: Job, found: JobResult, result: WriteResult) -> JobResult:
        """Return `found` with the settlement that a read of the record after the write gives."""
        settlement = result.sent_entry.settlement

        def settle_later(entry: Entry, found: Settlement) -> Entry:
            nonlocal settlement
            settlement = found
            return entry._replace(settlement=found)

        read_back = ReadBack(
            job.request, job.options, self._service, self._reader, settle_later, self._signals, self._runtime
        )
        try:
            concluded = read_back.conclude(result)
            settlement = concluded.sent_entry.settlement
            if concluded.verified is False:
                status = concluded.status_after
                settlement = settlement._replace(detail=f"{settlement.detail}; the service then reported {status}")
        except EscrowctlError as error:
            if settlement.state is State.DONE:
                after = error.facts.get("status_after")
                status = f"the status is {after}" if after else "the escrow cannot be read now"
                settlement = settlement._replace(remark=f"not confirmed: {status}")
        return found._replace(settlement=settlement)


def _make_defect_result(job: Job, error: Exception) -> JobResult:
    name = type(error).__name__
    if job.entry is None:
        return JobResult(job.line, failure=(ErrorCode.DEFECT, f"internal error in escrowctl ({name})."))
    lost = Settlement(Outcome.UNKNOWN, f"escrowctl could not process the reply ({name})")
    return JobResult(job.line, settlement=lost)
