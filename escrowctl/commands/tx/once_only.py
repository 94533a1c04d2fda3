"""Shared by the once-only writes to a record: their options, the write to each id, and the result."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from escrowctl.client.http import SUCCESS
from escrowctl.commands.read import read_ids
from escrowctl.commands.several import run_several
from escrowctl.commands.times import parse_duration
from escrowctl.commands.writing import ask_on_record, check_currency, note_replayed, read_data, view_rehearsed
from escrowctl.config.advice import advise_pending, advise_proving
from escrowctl.contract.identifiers import refuse_repeated
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.money import Money, parse_amount
from escrowctl.contract.operations import Operation
from escrowctl.errors import NOTHING_SENT_NOW, ErrorCode, EscrowctlError, Hint, about, bad_value, command, effect_on
from escrowctl.output.view import View
from escrowctl.prompt import confirmation_needed
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import RecordOptions, WriteOptions, request_once_only

if TYPE_CHECKING:
    from escrowctl.writes.inspection import Confirm
    from escrowctl.writes.result import WriteResult


def read_targets(
    session: Session, operation: Operation, ids: list[str] | None, *, asks: bool, key: str | None
) -> tuple[list[str], bool]:
    """Return the ids, and whether they are several. Raises BAD_VALUE; CONFIRMATION_NEEDED for stdin if it `asks`."""
    wanted, several = read_ids(ids, session.runtime.stdin)
    if ids == ["-"] and asks:
        raise confirmation_needed("ids come from standard input, so escrowctl cannot ask for confirmation", "--yes")
    refuse_repeated(wanted)
    if several and key is not None:
        raise bad_value(f"--idempotency-key is for one {operation.verb}: give one id.")
    return wanted, several


def check_record_options(
    session: Session,
    operation: Operation,
    *,
    data: str | None,
    amount: str | None,
    currency: str | None,
    allow_unreadable: bool,
    skip_done: bool,
    deadline: str | None,
) -> RecordOptions:
    """Return the checked options. `deadline` None: do not wait. Raises EscrowctlError `BAD_VALUE`."""
    seconds = None
    if deadline is not None:
        seconds = parse_duration(deadline, name="--deadline").total_seconds()
        require_proving_statuses(session, operation, needed_by="--wait")
    return RecordOptions(
        body=encode(read_data(data, session.runtime.stdin)) if data is not None else None,
        expected_amount=parse_amount(amount, name="--expect-amount") if amount is not None else None,
        expected_currency=check_currency(session, currency, name="--expect-currency") if currency is not None else None,
        allow_unreadable=allow_unreadable,
        skip_done=skip_done,
        wait=seconds,
    )


def write_each(
    session: Session,
    operation: Operation,
    ids: list[str],
    how: RecordOptions,
    options: WriteOptions,
    *,
    several: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Do a once-only write to each id and show its result. On a dry run, show each request."""
    if dry_run:
        _rehearse_each(session, operation, ids, how, options, several=several)
        return
    session.service.refuse_key(*ids)
    confirm, refused = _confirmation(session, operation, ids, how, options, together=several and not yes, yes=yes)

    def write_one(resource_id: str) -> View:
        if resource_id in refused:
            raise refused[resource_id]
        with about(resource_id):
            result = session.pipeline.run_on_record(
                lambda found: request_once_only(operation, resource_id, how.body, options, found=found), confirm, how
            )
        note_result(session, operation, resource_id, result)
        session.remember("transaction", {resource_id: result.status_after})
        status = result.entry.settlement.http_status if result.entry else None
        read: dict[str, JsonValue] = {
            "status_before": result.status_before,
            "status_after": result.status_after,
            "verified": result.verified,
        }
        document: dict[str, JsonValue] = {
            "id": resource_id,
            "http_status": Number(str(status)) if status is not None else None,
            "reply": result.record.document if result.record else None,
            **read,
        }
        before, after = result.status_before or "?", result.status_after or "?"
        line = f"{resource_id}   {before} -> {after}   {_how_verified(result)}"
        return View(document, resource_id, document, line=line, named={"id": resource_id, **read}, record=document)

    if several:

        def write_line(resource_id: str) -> View:
            view = write_one(resource_id)
            assert isinstance(view.document, dict)
            document = {"id": view.id, "outcome": "done", **view.document}
            return view._replace(document=document, shown=document, record=document, outcome="done")

        run_several(session, ids, write_line, verb=operation.verb)
        return
    with session.signals.held():
        view = write_one(ids[0])
        assert isinstance(view.document, dict)
        session.show(
            view, done=f"the service accepted the {operation.verb} of {ids[0]} ({view.document['http_status']})"
        )


def _rehearse_each(
    session: Session, operation: Operation, ids: list[str], how: RecordOptions, options: WriteOptions, *, several: bool
) -> None:
    """Show the request for each id, after all checks on this machine. Caps count the money of `--expect-*`."""
    amount, currency = how.expected_amount, how.expected_currency
    money = Money(amount, currency) if amount is not None and currency is not None else None

    def view(resource_id: str) -> View:
        request = request_once_only(operation, resource_id, how.body, options)
        try:
            with about(resource_id):
                return view_rehearsed(session, request._replace(money=money))
        except EscrowctlError as error:
            if error.code is not ErrorCode.ALREADY_DONE or not how.skip_done:
                raise
            session.console.note(
                f"already_{operation.done}", f"{error.message} It would be skipped if the service reports that"
            )
            return View({"id": resource_id, "dry_run": True}, resource_id, {"id": resource_id})

    if several:
        run_several(session, ids, view)
    else:
        session.show(view(ids[0]))


def _confirmation(
    session: Session,
    operation: Operation,
    ids: list[str],
    how: RecordOptions,
    options: WriteOptions,
    *,
    together: bool,
    yes: bool,
) -> "tuple[Confirm, Mapping[str, EscrowctlError]]":
    """Return the function that confirms each write, and the refused ids. `together`: ask once here, for all."""
    if not together:
        return ask_on_record(session, operation, how.body, yes=yes), {}
    from escrowctl.commands.tx.confirmation import confirm_all, inspect_all  # noqa: PLC0415 - for several ids alone

    inspected = inspect_all(session, operation, ids, how, options)
    confirm = confirm_all(session, operation, inspected)
    # With skip_done, an id that is already done is no failure: the write itself reports it.
    refused = {
        one: error
        for one, error in inspected.refused.items()
        if not (how.skip_done and error.code is ErrorCode.ALREADY_DONE)
    }
    return confirm, refused


def require_proving_statuses(session: Session, operation: Operation, *, needed_by: str) -> frozenset[str]:
    """Return the statuses that prove a write, case-folded. Raises EscrowctlError `BAD_VALUE` if none is configured."""
    service, done = session.service, operation.done
    statuses = kind_of(operation.name).proving_statuses(service)
    if not statuses:
        why = f"is not set in profile {service.profile}" if service.profile else "only a profile can set"
        raise bad_value(f"{needed_by} needs status.{done}, which {why}.", hint=advise_proving(service, done))
    return statuses


def _how_verified(result: "WriteResult") -> str:
    if result.verified is True:
        return "confirmed by reading the escrow"
    return f"accepted, but {result.why_no_status}" if result.status_after is None else "accepted, not confirmed"


def note_result(session: Session, operation: Operation, resource_id: str, result: "WriteResult") -> None:
    """Note if a write was not sent now, was refused first, or is not confirmed."""
    note, entry, verb, done = session.console.note, result.entry, operation.verb, operation.done
    if entry is None:
        note(
            f"already_{done}",
            f"{_how_skipped(operation, resource_id, result)}. {effect_on(resource_id, NOTHING_SENT_NOW)}",
        )
        return
    note_replayed(session, result)
    if not result.replayed and entry.settlement.http_status not in SUCCESS:
        how = f"the service replied {entry.settlement.http_status} to the {verb} of {resource_id}"
        note(f"{done}_despite_refusal", f"{how}, but now reports it as {result.status_after}")
    elif result.verified is False:
        how = f"the {verb} of {resource_id} was accepted, but is not confirmed yet: the status is {result.status_after}"
        hint = command(f"journal resolve {entry.name}", "to check again, and record it")
        note(f"not_yet_{done}", how, hints=(hint,), invocation=session.invocation)
    elif result.verified is None and not entry.settlement.verified:
        why, hints = _why_open(session, operation, resource_id, result)
        how = f"the {verb} of {resource_id} was accepted, but is not confirmed: {why}"
        note("not_confirmed", how, hints=hints, invocation=session.invocation)


def _how_skipped(operation: Operation, resource_id: str, result: "WriteResult") -> str:
    """Return why nothing was sent."""
    verb = operation.verb
    if result.verified is None:
        how = f"the {verb} of {resource_id} was done or accepted earlier, but is not confirmed"
        return f"{how}: the status is {result.status_after}, and status.{operation.done} is not set"
    if not result.verified:
        return f"the service reports {resource_id} as {result.status_after}: a {verb} may be in progress"
    return f"{resource_id} was already {operation.done}"


def _why_open(
    session: Session, operation: Operation, resource_id: str, result: "WriteResult"
) -> tuple[str, tuple[Hint, ...]]:
    """Return why escrowctl cannot confirm a write, and hints that set the meaning of its status."""
    status, done = result.status_after, operation.done
    again = command(f"tx get {resource_id}", "to check again")
    if status is None:
        find = command(f"doctor --tx {resource_id}", "to find its field")
        return result.why_no_status, (again if result.after is None else find,)
    if status == result.status_before:
        return f"the status is still {status}", (again,)
    why = f"the status is now {status}, and status.{done} does not name it"
    hints = advise_proving(session.service, done)
    if result.status_before is not None and session.service.profile is not None:
        hints += advise_pending(session.service, status, operation.verb)
    return why, hints
