"""Send one attempt of a write and judge its reply. Nothing here writes to the journal."""

from collections.abc import Callable

from escrowctl.client.connection import Connection
from escrowctl.client.http import Evidence, Exchange, Fault, Request, make_headers
from escrowctl.client.retry import may_write_again
from escrowctl.config.service import MAX_REPLY_BYTES, Service
from escrowctl.contract.json import encode
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.contract.record import Record
from escrowctl.contract.redaction import hide_private_values, redact
from escrowctl.errors import Outcome
from escrowctl.journal.model import Entry, Settlement
from escrowctl.writes.create import describe_differences
from escrowctl.writes.outcome import Judgement, find_other_write, judge_write, make_sent_request
from escrowctl.writes.requests import WriteRequest
from escrowctl.writes.result import WriteResult


class Sender:
    """Sends attempts to one service over one connection, for one thread.

    `report_defect` is called with an internal error. The attempt still gets a settlement.
    """

    def __init__(
        self, service: Service, connection: Connection, *, report_defect: Callable[[BaseException], None]
    ) -> None:
        self._service = service
        self._connection = connection
        self._report_defect = report_defect

    def send(self, entry: Entry, request: WriteRequest, evidence: Evidence) -> Exchange:
        """Send an entry's current attempt and return the exchange.

        Afterwards, even after an exception, `evidence` says whether a byte may have left. If the reply is to a
        different write, the exchange has the fault `Fault.MISDIRECTED` and no answer.
        """
        intent = entry.intent
        # The request's own body: the stored one has hashes in place of secrets.
        body = request.body.encode() if request.body is not None else None
        headers = make_headers(
            request_id=entry.request_id, has_body=body is not None, idempotency_key=intent.idempotency_key
        )
        outgoing = Request(intent.method, intent.url, headers, body, request.operation.is_confidential)
        seconds = self._service.write_timeout
        exchange = self._connection.exchange(outgoing, evidence=evidence, seconds=seconds, limit=MAX_REPLY_BYTES)
        answer = exchange.answer
        other_write = find_other_write(answer, entry, request.body, self._service) if answer is not None else None
        if answer is None or other_write is None:
            return exchange
        return exchange._replace(answer=None, fault=Fault.MISDIRECTED, detail=f"status {answer.status}, {other_write}")

    def judge(self, entry: Entry, request: WriteRequest, exchange: Exchange, *, may_be_applied: bool) -> WriteResult:
        """Return the result of an attempt, for the caller to record. Its outcome is unknown if judging fails.

        `may_be_applied`: an earlier attempt may have been applied. Then only a reply that proves the new attempt
        settles the write.
        """
        try:
            judged = judge_write(request.operation, exchange, sent=make_sent_request(self._service, entry))
            if may_be_applied:
                judged = judged.with_earlier_unknown()
            settled = entry._replace(settlement=self._make_settlement(request, judged, exchange))
            return WriteResult(settled, judged.record, judged.code, answer=exchange.answer)
        except Exception as error:  # noqa: BLE001 - after any failure here, its bytes may have left
            self._report_defect(error)
            return make_unprocessed_result(entry, exchange, error)

    def may_send_again(self, exchange: Exchange) -> bool:
        """Whether to send the write again after this exchange, under the same key, without asking the operator."""
        service = self._service
        return may_write_again(
            exchange, may_repeat_throttled=service.may_repeat_throttled, deduplicated=service.deduplicates
        )

    def _make_settlement(self, request: WriteRequest, judged: Judgement, exchange: Exchange) -> Settlement:
        record, result_id, remark = judged.record, None, None
        if judged.outcome is Outcome.DONE:
            result_id = judged.result_id or (record.known.id if record else None)
            if request.operation.name == CREATE_TRANSACTION.name:
                remark = describe_differences(self._service, record, request.money)
        is_timeout = exchange.fault is Fault.TIMEOUT
        return Settlement(
            outcome=judged.outcome,
            detail=f"no reply came within {self._service.write_timeout:g} s" if is_timeout else judged.detail,
            http_status=exchange.answer.status if exchange.answer else None,
            result_id=result_id,
            reply=self._redact_reply(request, record) if record else None,
            may_repeat=judged.may_repeat,
            remark=remark,
        )

    def _redact_reply(self, request: WriteRequest, record: Record) -> str:
        """Return the reply as the journal stores it: without values that may be secret."""
        if not request.operation.is_confidential:
            return encode(hide_private_values(record.document))
        return encode(redact(record.document, harmless=self._service.webhooks.field_names))


def make_unprocessed_result(entry: Entry, exchange: Exchange, error: Exception) -> WriteResult:
    """Return the result of an attempt whose reply could not be processed. Its outcome is unknown."""
    detail = f"escrowctl could not process the reply ({type(error).__name__})"
    settlement = Settlement(Outcome.UNKNOWN, detail, exchange.answer.status if exchange.answer else None)
    return WriteResult(entry._replace(settlement=settlement), answer=exchange.answer)
