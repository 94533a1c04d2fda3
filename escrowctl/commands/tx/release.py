"""`escrowctl tx release`: release one escrow or several, each once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from escrowctl import options
from escrowctl.client.http import SUCCESS_STATUSES
from escrowctl.commands import writing
from escrowctl.commands.read import read_ids
from escrowctl.commands.several import run_several
from escrowctl.commands.times import parse_duration
from escrowctl.config.advice import advise_add_pending, advise_proving_status
from escrowctl.contract.identifiers import refuse_repeated_ids
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.money import Money, find_money, parse_amount
from escrowctl.contract.operations import RELEASE_TRANSACTION
from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, adding_id, bad_value, command, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.prompt import confirmation_needed
from escrowctl.session import Session, session_of
from escrowctl.writes.inspection import Confirm, RecordOptions, require_unchanged
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteOptions, WriteRequest, make_once_only_request

if TYPE_CHECKING:
    from escrowctl.writes.result import WriteResult

_COLUMNS = ("id", "amount", "currency", "status")


def release(
    context: typer.Context,
    ids: options.IdsArgument = None,
    yes: options.YesOption = False,
    expect_amount: options.ExpectAmountOption = None,
    expect_currency: options.ExpectCurrencyOption = None,
    skip_released: Annotated[
        bool, typer.Option("--skip-released", help="Succeed if the escrow is already released.")
    ] = False,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Release even if the escrow cannot be read.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the service reports the release.")] = False,
    deadline: options.DeadlineOption = "10m",
    reason: options.ReasonOption = None,
    data: options.DataOption = None,
    idempotency_key: options.KeyOption = None,
    allow_duplicate: options.AllowDuplicateOption = None,
    dry_run: options.DryRunOption = False,
) -> None:
    """Release escrowed money for good. You confirm by typing the id (live: the amount).

    \b
    Examples:
      escrowctl tx release tx_7K2M9QHD
      escrowctl tx release tx_7K2M9QHD --yes --expect-amount 100
    """
    session = session_of(context)
    resource_ids, several = read_ids(ids, session.runtime.stdin)
    if ids == ["-"] and not (yes or dry_run):
        raise confirmation_needed("ids come from standard input, so escrowctl cannot ask for confirmation", "--yes")
    refuse_repeated_ids(resource_ids)
    if several and idempotency_key is not None:
        raise bad_value("--idempotency-key is for one release: give one id.")
    seconds = None
    if wait:
        seconds = parse_duration(deadline, name="--deadline").total_seconds()
        require_released_statuses(session, needed_by="--wait")
    record_options = RecordOptions(
        body=encode(writing.read_data(data, session.runtime.stdin)) if data is not None else None,
        expected_amount=parse_amount(expect_amount, name="--expect-amount") if expect_amount is not None else None,
        expected_currency=writing.check_currency(session, expect_currency, name="--expect-currency")
        if expect_currency is not None
        else None,
        allow_unreadable=allow_unreadable,
        skip_done=skip_released,
        wait=seconds,
    )
    write_options = writing.check_options(idempotency_key, reason, allow_duplicate)
    releases = Releases(session, resource_ids, several, record_options, write_options)
    if not dry_run:
        releases.send(yes=yes)
    elif several:
        run_several(session, resource_ids, releases.view_request)
    else:
        session.show(releases.view_request(resource_ids[0]))


class Releases(NamedTuple):
    """The releases of one command, with their options. `several`: show each release as one line."""

    session: Session
    ids: list[str]
    several: bool
    record_options: RecordOptions
    write_options: WriteOptions

    def request(self, resource_id: str, found: KnownFields | None = None) -> WriteRequest:
        """Return the request to release an escrow. `found`: the escrow's record (None: not read)."""
        body = self.record_options.body
        return make_once_only_request(RELEASE_TRANSACTION, resource_id, body, self.write_options, found=found)

    def send(self, *, yes: bool) -> None:
        """Release each escrow, and show its result. One question confirms all releases."""
        session = self.session
        session.service.refuse_key(*self.ids)
        confirm = writing.make_confirm(session, RELEASE_TRANSACTION, self.record_options.body, yes=yes)
        refused: Mapping[str, EscrowctlError] = {}
        if self.several and not yes:
            confirm, refused = _confirm_all(session, {one: self.request(one) for one in self.ids}, self.record_options)

        def release_one(resource_id: str) -> View:
            if resource_id in refused:
                raise refused[resource_id]
            view = self._release(resource_id, confirm)
            assert isinstance(view.document, dict)
            document = {"id": view.id, "outcome": "done", **view.document}
            return view._replace(document=document, shown=document, record=document, outcome="done")

        if self.several:
            run_several(session, self.ids, release_one, verb=RELEASE_TRANSACTION.verb)
            return
        with session.signals.held():
            view = self._release(self.ids[0], confirm)
            assert isinstance(view.document, dict)
            status = view.document["http_status"]
            session.show(view, done=f"the service accepted the release of {self.ids[0]} ({status})")

    def view_request(self, resource_id: str) -> View:
        """Check a request on this machine, and return its view. Caps are compared with the money in `--expect-*`."""
        amount, currency = self.record_options.expected_amount, self.record_options.expected_currency
        money = Money(amount, currency) if amount is not None and currency is not None else None
        try:
            with adding_id(resource_id):
                return writing.view_dry_run(self.session, self.request(resource_id)._replace(money=money))
        except EscrowctlError as error:
            if error.code is not ErrorCode.ALREADY_DONE or not self.record_options.skip_done:
                raise
            message = f"{error.message} The release is skipped if the service also reports it as done"
            self.session.console.note("already_released", message)
            return View({"id": resource_id, "dry_run": True}, resource_id, {"id": resource_id})

    def _release(self, resource_id: str, confirm: Confirm) -> View:
        with adding_id(resource_id):
            result = self.session.pipeline.run_on_record(
                lambda found: self.request(resource_id, found), confirm, self.record_options
            )
        note_release_result(self.session, resource_id, result)
        self.session.remember_ids("transaction", {resource_id: result.status_after})
        status = result.entry.settlement.http_status if result.entry else None
        statuses: dict[str, JsonValue] = {
            "status_before": result.status_before,
            "status_after": result.status_after,
            "verified": result.verified,
        }
        document: dict[str, JsonValue] = {
            "id": resource_id,
            "http_status": Number(str(status)) if status is not None else None,
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
        return View(document, resource_id, document, line=line, named={"id": resource_id, **statuses}, record=document)


def _confirm_all(
    session: Session, requests: Mapping[str, WriteRequest], options: RecordOptions
) -> tuple[Confirm, Mapping[str, EscrowctlError]]:
    """Read the escrow of each request, show all escrows, and ask one question for all releases.

    `requests`: id -> request. Return a function that checks before each release that the escrow is still as shown,
    and the errors of the refused ids. Raises `DECLINED`, `CONFIRMATION_NEEDED` or `JOURNAL_UNUSABLE`.
    """
    from escrowctl.commands.sums import add_up, describe_escrow_count, format_sums  # noqa: PLC0415 - one id needs none

    records: dict[str, KnownFields | None] = {}
    refused: dict[str, EscrowctlError] = {}
    for requested_id, request in requests.items():
        try:
            records[requested_id] = session.pipeline.inspect(request, options)
        except EscrowctlError as error:
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                raise
            refused[requested_id] = error
    if records:
        count, service = len(records), session.service
        target = "" if service.sandbox else f"   profile {service.name}   host {service.origin}"
        rows = tuple(
            View(None, one, named={name: getattr(found, name, None) for name in _COLUMNS} | {"id": one})
            for one, found in records.items()
        )
        warning = kind_of(RELEASE_TRANSACTION.name).warning
        session.prompt.confirm(
            [
                *(f"  {line}" for line in session.console.render_table_lines(Listing(_COLUMNS, rows))),
                *(f"  left out: {error.message}" for error in refused.values()),
                f"  release {describe_escrow_count(count)}{target}",
                *format_sums(add_up(map(find_money, records.values())), describe_escrow_count),
                f"{warning} To release {'it' if count == 1 else 'them'}, type {count}:",
            ],
            str(count),
            why=f"the release of {describe_escrow_count(count)} needs confirmation",
            declined="nothing was released",
        )

    def confirm(resource_id: str, found: KnownFields | None) -> bool:
        if resource_id not in records:
            message = f"{resource_id} changed after the question: it was not among the escrows to confirm."
            raise not_sent(ErrorCode.EXPECTATION_FAILED, message)
        require_unchanged(resource_id, records[resource_id], found)
        # False: `found` was read after the question, so it need not be read again.
        return False

    # With skip_done, an escrow that is already released is no failure: the release itself reports it.
    skipped = ErrorCode.ALREADY_DONE if options.skip_done else None
    return confirm, {one: error for one, error in refused.items() if error.code is not skipped}


def require_released_statuses(session: Session, *, needed_by: str) -> frozenset[str]:
    """Return the case-folded statuses that prove a release. Raises `BAD_VALUE`, with `needed_by`, if none is set."""
    service = session.service
    if not service.released:
        in_profile = f" in profile {service.profile}" if service.profile else ""
        hint = advise_proving_status(service, RELEASE_TRANSACTION.done)
        raise bad_value(f"{needed_by} needs the setting status.released, which is not set{in_profile}.", hint=hint)
    return service.released


def note_release_result(session: Session, resource_id: str, result: "WriteResult") -> None:
    """Write a note if the release was skipped, is not confirmed, or is done although the reply was an error."""
    note, entry, status = session.console.note, result.entry, result.status_after
    if entry is None:
        if result.verified is None:
            accepted = f"the release of {resource_id} was done or accepted earlier, but is not confirmed"
            reason = f"{accepted}: the status is {status}, and status.released is not set"
        elif result.verified:
            reason = f"{resource_id} was already released"
        else:
            reason = f"the service reports {resource_id} as {status}: a release may be in progress"
        note("already_released", f"{reason}. This command sent nothing for {resource_id}")
        return
    writing.note_replayed(session, result)
    accepted = f"the release of {resource_id} was accepted, but is not confirmed"
    if not result.replayed and entry.settlement.http_status not in SUCCESS_STATUSES:
        replied = f"the service replied {entry.settlement.http_status} to the release of {resource_id}"
        note("released_despite_refusal", f"{replied}, but now reports the escrow as {status}")
    elif result.verified is False:
        hint = command(f"journal resolve {entry.name}", "to check again and record the result")
        message = f"{accepted} yet: the status is {status}"
        note("not_yet_released", message, hints=(hint,), invocation=session.invocation)
    elif result.verified is None and not entry.settlement.verified:
        why, hints = _why_unconfirmed(session, resource_id, result)
        note("not_confirmed", f"{accepted}: {why}", hints=hints, invocation=session.invocation)


def _why_unconfirmed(session: Session, resource_id: str, result: "WriteResult") -> tuple[str, tuple[Hint, ...]]:
    """Return why a release is not confirmed, and hints to read the escrow again or to configure its status."""
    status = result.status_after
    again = command(f"tx get {resource_id}", "to check again")
    if status is None:
        find = command(f"doctor --tx {resource_id}", "to find the field of its status")
        return result.why_no_status, (again if result.after is None else find,)
    if status == result.status_before:
        return f"the status is still {status}", (again,)
    hints = advise_proving_status(session.service, RELEASE_TRANSACTION.done)
    if result.status_before is not None and session.service.profile is not None:
        hints += advise_add_pending(session.service, status, RELEASE_TRANSACTION.verb)
    return f"the status is now {status}, and status.released does not name it", hints
