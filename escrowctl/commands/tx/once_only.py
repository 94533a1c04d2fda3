"""Carry out a write that an escrow gets only once, such as a release, for one escrow or several."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from escrowctl.client.http import SUCCESS_STATUSES
from escrowctl.commands import writing
from escrowctl.commands.several import run_several
from escrowctl.config.advice import advise_add_pending, advise_proving_status
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.money import Money, find_money
from escrowctl.contract.operations import Operation
from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, adding_id, command, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session
from escrowctl.writes.inspection import Confirm, RecordOptions, require_unchanged
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteOptions, WriteRequest, make_once_only_request
from escrowctl.writes.result import WriteResult

_COLUMNS = ("id", "amount", "currency", "status")


class OnceOnlyWrites(NamedTuple):
    """The writes of one command, with their options. `several`: show each write as one line."""

    session: Session
    operation: Operation
    ids: list[str]
    several: bool
    record_options: RecordOptions
    write_options: WriteOptions

    def carry_out(self, *, yes: bool, dry_run: bool) -> None:
        """Send each write and show its result, after one question unless `yes`. If `dry_run`, show the requests."""
        if not dry_run:
            self._send(yes=yes)
        elif self.several:
            run_several(self.session, self.ids, self._view_request)
        else:
            self.session.show(self._view_request(self.ids[0]))

    def _send(self, *, yes: bool) -> None:
        session = self.session
        session.service.refuse_key(*self.ids)
        confirm = writing.make_confirm(session, self.operation, self.record_options.body, yes=yes)
        refused: Mapping[str, EscrowctlError] = {}
        if self.several and not yes:
            confirm, refused = self._confirm_all()
        send_one = partial(self._send_one, confirm, refused)
        if self.several:
            run_several(session, self.ids, send_one, verb=self.operation.verb)
            return
        with session.signals.held():
            session.show(send_one(self.ids[0]), done=f"the {self.operation.verb} of {self.ids[0]} was accepted")

    def _make_request(self, resource_id: str, found: KnownFields | None = None) -> WriteRequest:
        """Return a request. If its record was not read, its money is that in `--expect-*`."""
        options = self.record_options
        request = make_once_only_request(self.operation, resource_id, options.body, self.write_options, found=found)
        if found is None and options.expected_amount is not None and options.expected_currency is not None:
            return request._replace(money=Money(options.expected_amount, options.expected_currency))
        return request

    def _view_request(self, resource_id: str) -> View:
        """Check a request on this machine, and return its view. Caps are compared with the money in `--expect-*`."""
        verb, done = self.operation.verb, self.operation.done
        try:
            with adding_id(resource_id):
                return writing.view_dry_run(self.session, self._make_request(resource_id))
        except EscrowctlError as error:
            if error.code is not ErrorCode.ALREADY_DONE or not self.record_options.skip_done:
                raise
            message = f"{error.message} The {verb} is skipped if the service also reports it as done"
            self.session.console.note(f"already_{done}", message)
            return View({"id": resource_id, "dry_run": True}, resource_id, {"id": resource_id})

    def _send_one(self, confirm: Confirm, refused: Mapping[str, EscrowctlError], resource_id: str) -> View:
        if resource_id in refused:
            raise refused[resource_id]
        with adding_id(resource_id):
            make_request = partial(self._make_request, resource_id)
            result = self.session.pipeline.run_on_record(make_request, confirm, self.record_options)
        note_result(self.session, self.operation, resource_id, result)
        self.session.remember_ids(self.operation.noun, {resource_id: result.status_after})
        http_status = result.entry.settlement.http_status if result.entry else None
        statuses: dict[str, JsonValue] = {
            "status_before": result.status_before,
            "status_after": result.status_after,
            "verified": result.verified,
        }
        document: dict[str, JsonValue] = {
            "id": resource_id,
            **({"outcome": "done"} if self.several else {}),
            "http_status": Number(str(http_status)) if http_status is not None else None,
            "reply": result.record.document if result.record else None,
            **statuses,
        }
        before, after = result.status_before or "?", result.status_after or "?"
        if result.verified:
            outcome = "confirmed by reading the escrow"
        elif result.status_after is None:
            outcome = f"accepted, but {result.why_no_status}"
        else:
            outcome = "accepted, not confirmed"
        line = f"{resource_id}   {before} -> {after}   {outcome}"
        view = View(document, resource_id, document, line=line, named={"id": resource_id, **statuses}, record=document)
        return view._replace(outcome="done" if self.several else None)

    def _confirm_all(self) -> tuple[Confirm, Mapping[str, EscrowctlError]]:
        """Read each escrow, show all escrows, and ask one question for all writes.

        Return a function that checks before each write that the escrow is still as shown, and the errors of the
        refused ids. Raises `DECLINED`, `CONFIRMATION_NEEDED` or `JOURNAL_UNUSABLE`.
        """
        records: dict[str, KnownFields | None] = {}
        refused: dict[str, EscrowctlError] = {}
        for requested_id in self.ids:
            try:
                request = self._make_request(requested_id)
                records[requested_id] = self.session.pipeline.inspect(request, self.record_options)
            except EscrowctlError as error:
                if error.code is ErrorCode.JOURNAL_UNUSABLE:
                    raise
                refused[requested_id] = error
        if records:
            self._ask(records, refused)

        def confirm(resource_id: str, found: KnownFields | None) -> bool:
            if resource_id not in records:
                message = f"{resource_id} changed after the question: it was not among the escrows to confirm."
                raise not_sent(ErrorCode.EXPECTATION_FAILED, message)
            require_unchanged(resource_id, records[resource_id], found)
            # False: `found` was read after the question, so it need not be read again.
            return False

        # With skip_done, an escrow that is already done is no failure: the write itself reports it.
        skipped = ErrorCode.ALREADY_DONE if self.record_options.skip_done else None
        return confirm, {one: error for one, error in refused.items() if error.code is not skipped}

    def _ask(self, records: Mapping[str, KnownFields | None], refused: Mapping[str, EscrowctlError]) -> None:
        """Show the records and their sums, and ask for the number of records. `refused`: the ids left out."""
        from escrowctl.commands.sums import add_up, describe_escrow_count, format_sums  # noqa: PLC0415 - one id needs none

        session, verb, count = self.session, self.operation.verb, len(records)
        service, escrows = session.service, describe_escrow_count(count)
        target = "" if service.sandbox else f"   profile {service.name}   host {service.origin}"
        rows = tuple(
            View(None, one, named={name: getattr(found, name, None) for name in _COLUMNS} | {"id": one})
            for one, found in records.items()
        )
        warning = kind_of(self.operation.name).warning
        session.prompt.confirm(
            [
                *(f"  {line}" for line in session.console.render_table_lines(Listing(_COLUMNS, rows))),
                *(f"  left out: {error.message}" for error in refused.values()),
                f"  {verb} {escrows}{target}",
                *format_sums(add_up(map(find_money, records.values())), describe_escrow_count),
                f"{warning} To {verb} {'it' if count == 1 else 'them'}, type {count}:",
            ],
            str(count),
            why=f"the {verb} of {escrows} needs confirmation",
            declined=f"nothing was {self.operation.done}",
        )


def note_result(session: Session, operation: Operation, resource_id: str, result: WriteResult) -> None:
    """Write a note if a once-only write was skipped, is not confirmed, or is done although the reply was an error."""
    note, entry, status = session.console.note, result.entry, result.status_after
    verb, done = operation.verb, operation.done
    if entry is None:
        if result.verified is None:
            accepted = f"the {verb} of {resource_id} was done or accepted earlier, but is not confirmed"
            reason = f"{accepted}: the status is {status}, and status.{done} is not set"
        elif result.verified:
            reason = f"{resource_id} was already {done}"
        else:
            reason = f"the service reports {resource_id} as {status}: a {verb} may be in progress"
        note(f"already_{done}", f"{reason}. This command sent nothing for {resource_id}")
        return
    writing.note_replayed(session, result)
    accepted = f"the {verb} of {resource_id} was accepted, but is not confirmed"
    if not result.replayed and entry.settlement.http_status not in SUCCESS_STATUSES:
        replied = f"the service replied {entry.settlement.http_status} to the {verb} of {resource_id}"
        note(f"{done}_despite_refusal", f"{replied}, but now reports the escrow as {status}")
    elif result.verified is False:
        hint = command(f"journal resolve {entry.name}", "to check again and record the result")
        note(f"not_yet_{done}", f"{accepted} yet: the status is {status}", hints=(hint,))
    elif result.verified is None and not entry.settlement.verified:
        why, hints = _why_unconfirmed(session, operation, resource_id, result)
        note("not_confirmed", f"{accepted}: {why}", hints=hints)


def _why_unconfirmed(
    session: Session, operation: Operation, resource_id: str, result: WriteResult
) -> tuple[str, tuple[Hint, ...]]:
    """Return why a write is not confirmed, and hints to read the escrow again or to configure its status."""
    status, done = result.status_after, operation.done
    again = command(f"tx get {resource_id}", "to check again")
    if status is None:
        find = command(f"doctor --tx {resource_id}", "to find the field of its status")
        return result.why_no_status, (again if result.after is None else find,)
    if status == result.status_before:
        return f"the status is still {status}", (again,)
    hints = advise_proving_status(session.service, done)
    if result.status_before is not None and session.service.profile is not None:
        hints += advise_add_pending(session.service, status, operation.verb)
    return f"the status is now {status}, and status.{done} does not name it", hints
