"""Carry out the rows of a batch, one at a time, as single commands would, but at the pace of the run."""

from collections.abc import Callable
from functools import partial

from escrowctl.batch.rows import RowContent, make_request
from escrowctl.batch.run import RowResult, Run
from escrowctl.client.connection import Connection
from escrowctl.client.http import Exchange
from escrowctl.client.reader import Reader
from escrowctl.client.retry import Attempts, Retry, is_throttled
from escrowctl.contract.money import Money
from escrowctl.errors import ErrorCode, EscrowctlError, Stopped
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.inspection import RecordOptions
from escrowctl.writes.pipeline import Pipeline
from escrowctl.writes.requests import RowOrigin, restore_request
from escrowctl.writes.result import WriteResult
from escrowctl.writes.writer import Writer


class Worker:
    """Carries out rows in one thread, over its own connection. `report_defect` is called with an internal error."""

    def __init__(self, connection: Connection, run: Run, report_defect: Callable[[BaseException], None]) -> None:
        self._batch, self._service = run.shared.batch, run.shared.service
        self._connection = connection
        self._run = run
        self._runtime = run.shared.runtime.with_sleep(run.sleep)
        self._report_defect = report_defect
        connection.admission = partial(run.admit, connection)
        self.close = connection.close

    def send(self, row: RowContent) -> RowResult:
        """Carry out a row, and return its entry in the journal; never raises."""
        # Each row has its own retry budget and its own signals: only the run handles those of the process.
        reader = Reader(self._service, self._connection, _RowRetry(self._run, self._runtime), self._runtime, Signals())
        note_judged = partial(self._run.note_judged, row.line)
        writer = Writer(reader, self._run.journal, report_defect=self._report_defect, note_judged=note_judged)
        try:
            return RowResult(self._carry_out(row, Pipeline(writer)).sent_entry)
        except (EscrowctlError, Stopped) as error:
            return RowResult(writer.entry or row.sent, error)
        except Exception as error:  # noqa: BLE001 - the other rows must hear of it
            self._report_defect(error)
            failure = EscrowctlError(ErrorCode.DEFECT, f"internal error in escrowctl ({type(error).__name__}).")
            return RowResult(writer.entry or row.sent, failure)

    def _carry_out(self, row: RowContent, pipeline: Pipeline) -> WriteResult:
        if (earlier := row.sent) is not None:
            request = restore_request(earlier)
            assert request is not None, "a batch stores no secrets"
            return pipeline.run_again(earlier, request, _expect_money(earlier.intent.money))
        batch = self._batch
        origin = RowOrigin(batch.name, row.line, row.columns, batch.run_key or "")
        make_row_request = partial(make_request, batch.kind, row, self._service, origin)
        if batch.kind.operation.is_once_only:
            # The operator has confirmed the batch: no row asks.
            return pipeline.run_on_record(make_row_request, lambda _id, _found: False, _expect_money(row.money))
        return pipeline.run(make_row_request())


class _RowRetry(Retry):
    """The retries of one row: as of a single command, but a throttled request is sent again until the run gives up."""

    def __init__(self, run: Run, runtime: Runtime) -> None:
        super().__init__(runtime, Signals(), lambda _: None)
        self._run = run

    def wait_before_retry(self, attempts: Attempts, exchange: Exchange) -> bool:
        if is_throttled(exchange):
            attempts.count -= 1
            may_go_again = not self._run.pace.must_give_up
        else:
            may_go_again = super().wait_before_retry(attempts, exchange)
        if may_go_again:
            self._run.wait_for_turn()
        return may_go_again


def _expect_money(money: Money | None) -> RecordOptions:
    """Return options that allow only a record with this amount and currency; `money` None: any record."""
    return RecordOptions(None, money.amount, money.currency) if money else RecordOptions()
