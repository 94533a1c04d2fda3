"""`escrowctl tx release`."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from escrowctl.client.http import SUCCESS
from escrowctl.commands.read import read_ids
from escrowctl.commands.several import run_several
from escrowctl.commands.writing import (
    ask_on_record,
    check_currency,
    check_options,
    note_replayed,
    read_data,
    show_request,
)
from escrowctl.contract.identifiers import refuse_confusable
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.money import parse_amount
from escrowctl.contract.operations import RELEASE_TRANSACTION, Operation
from escrowctl.errors import bad_value
from escrowctl.options import DataOption, DespiteOption, DryRunOption, KeyOption, ReasonOption, YesOption
from escrowctl.output.view import View, flatten
from escrowctl.prompt import confirmation_needed
from escrowctl.session import Session, session_of
from escrowctl.writes.requests import ReleaseOptions, WriteOptions, request_release, set_pending

if TYPE_CHECKING:
    from escrowctl.writes.result import WriteResult


def release(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Transaction ids, or - for stdin.")] = None,
    yes: YesOption = False,
    expect_amount: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Refuse unless the escrow holds this amount.")
    ] = None,
    expect_currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Refuse unless it is in this currency.")
    ] = None,
    skip_released: Annotated[
        bool, typer.Option("--skip-released", help="Succeed where it is released already.")
    ] = False,
    unread: Annotated[
        bool, typer.Option("--allow-unreadable", help="Release although its record cannot be read.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it reads as released.")] = False,
    deadline: Annotated[str, typer.Option(metavar="TIME", help="How long --wait waits: 90s, 10m, 2h.")] = "10m",
    reason: ReasonOption = None,
    data: DataOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Release the funds of escrows. This cannot be undone.

    The record is shown and its id (on a live service its amount) is to be typed; scripts say --yes.
    The result is read back: accepted is not yet released.

    \b
    Example:
      escrowctl tx release tx_7K2M9QHD --yes --expect-amount 100 --expect-currency USD
    """
    session = session_of(context)
    wanted, several = read_ids(ids, session.runtime.stdin)
    if ids == ["-"] and not (yes or dry_run):
        raise confirmation_needed("ids come from standard input, so escrowctl cannot ask for confirmation", "--yes")
    refuse_confusable(wanted)
    if several and idempotency_key is not None:
        raise bad_value("--idempotency-key is for one release: give one id.")
    release_options = ReleaseOptions(
        body=encode(read_data(data, session.runtime.stdin)) if data is not None else None,
        expected_amount=parse_amount(expect_amount, name="--expect-amount") if expect_amount is not None else None,
        expected_currency=_expected_currency(session, expect_currency),
        allow_unreadable=unread,
        skip_released=skip_released,
        wait=_check_wait(session, _parse_duration(deadline, name="--deadline")) if wait else None,
    )
    options = check_options(idempotency_key, reason, despite)
    release_all(session, wanted, release_options, options, several=several, yes=yes, dry_run=dry_run)


def release_all(
    session: Session,
    ids: list[str],
    release_options: ReleaseOptions,
    options: WriteOptions,
    *,
    several: bool,
    yes: bool,
    dry_run: bool,
    operation: Operation = RELEASE_TRANSACTION,
) -> None:
    """Release each id and show what became of it; on a dry run, show each request."""
    if dry_run:
        for one in ids:
            show_request(session, request_release(one, release_options, options, operation=operation))
        return
    session.service.refuse_key(operation.path, *ids)
    confirm = ask_on_record(session, operation, release_options.body, yes=yes)

    def release_one(resource_id: str) -> View:
        result = session.pipeline.run_on_record(
            lambda found: request_release(resource_id, release_options, options, found=found, operation=operation),
            confirm,
            release_options,
        )
        _note_release(session, resource_id, result)
        return _view(resource_id, result)

    if several:
        run_several(session, ids, lambda one: _as_line(release_one(one)), done="was accepted")
        return
    with session.signals.held():
        view = release_one(ids[0])
        assert isinstance(view.document, dict)
        session.show(view, done=f"{ids[0]} was accepted for release ({view.document['http_status']})")
        session.remember("transaction", ids)


def _parse_duration(text: str, *, name: str) -> float:
    """Return seconds from `90s`, `10m` or `2h`; raises EscrowctlError (exit 2) otherwise."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text, re.ASCII)
    if not found:
        raise bad_value(f'{name} "{text}" is not a time: write one such as 90s, 10m or 2h.')
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def _check_wait(session: Session, seconds: float) -> float:
    if not session.service.released:
        raise bad_value(
            f"--wait needs a status that means released, and {session.service.name} has none.",
            hint='in the profile: status.released = ["released"]',
        )
    return seconds


def _expected_currency(session: Session, text: str | None) -> str | None:
    return check_currency(session, text, name="--expect-currency") if text is not None else None


def _view(resource_id: str, result: "WriteResult") -> View:
    status = result.entry.settlement.http_status if result.entry else None
    named: dict[str, JsonValue] = {
        "id": resource_id,
        "status_before": result.status_before,
        "status_after": result.status_after,
        "verified": result.verified,
    }
    document: dict[str, JsonValue] = {
        "id": resource_id,
        "http_status": Number(str(status)) if status is not None else None,
        "reply": result.record.document if result.record else None,
        **{name: value for name, value in named.items() if name != "id"},
    }
    before, after = result.status_before or "?", result.status_after or "?"
    line = f"{resource_id}   {before} -> {after}   {_how_verified(result)}"
    return View(document, resource_id, flatten(document), line=line, named=named, record=document)


def _as_line(view: View) -> View:
    """Return the view of one of several, with its outcome."""
    assert isinstance(view.document, dict)
    document = {"id": view.id, "outcome": "done", **view.document}
    return view._replace(document=document, fields=flatten(document), record=document, outcome="done")


def _how_verified(result: "WriteResult") -> str:
    if result.verified is True:
        return "confirmed by reading it back"
    if result.verified is False:
        return "accepted, not yet released"
    return "accepted, could not be read back" if result.status_after is None else "accepted, not confirmed"


def _note_release(session: Session, resource_id: str, result: "WriteResult") -> None:
    note, entry = session.console.note, result.entry
    if entry is None:
        how = "was already released" if result.verified else "has an earlier accepted release that is not confirmed"
        note("already_released", f"{resource_id} {how}. Nothing was sent now.")
    elif result.replayed:
        note_replayed(session, result)
    elif entry.settlement.http_status not in SUCCESS:
        how = f"the service replied {entry.settlement.http_status} ({entry.name})"
        note("released_despite_refusal", f"{how}; {resource_id} reads as {result.status_after} now")
    elif result.verified is False:
        note(
            "not_yet_released", f"accepted, not yet released: the status is {result.status_after}; --wait waits for it"
        )
    elif result.verified is None:
        note("not_confirmed", f"accepted, but the release is not confirmed: {_why_open(session, result)}")


def _why_open(session: Session, result: "WriteResult") -> str:
    """Return why escrowctl cannot confirm the release, and how to set what its status means."""
    status = result.status_after
    if status is None:
        return "its record could not be read back"
    if status == result.status_before:
        return f"the status is still {status}"
    why = f"the status is now {status}"
    if result.status_before is None or session.service.profile is None or session.service.is_pending(status):
        return why
    return f'{why}; if that means "on its way": {session.invocation} {set_pending(status)}'
