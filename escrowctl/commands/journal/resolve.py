"""`escrowctl journal resolve`: find or record the outcome of a write that is unknown."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, NamedTuple

import typer

from escrowctl.client.http import SUCCESS_STATUSES
from escrowctl.commands.journal.duplicates import make_duplicates_error
from escrowctl.commands.journal.listing import require_entry
from escrowctl.commands.rows import describe_state, view_resolved
from escrowctl.commands.tx.once_only import note_result
from escrowctl.commands.writing import check_text
from escrowctl.config.advice import advise_proving_status, advise_setting
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Outcome, Stopped, bad_value, command, not_sent
from escrowctl.journal.duplicates import find_pairs_with, list_duplicates
from escrowctl.journal.guards import identical_in_flight
from escrowctl.journal.model import Entry, OperatorDecision, State, parse_entry_name
from escrowctl.session import Session, session_of
from escrowctl.writes.create import find_difference_error, find_misread_id
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import account_of
from escrowctl.writes.resolve import EntryResolver, Resolution
from escrowctl.writes.result import write_failure


class _Options(NamedTuple):
    """The options of `journal resolve`. The decision is `applied`, `not_applied` or `resend`; no two may be set."""

    applied: bool
    not_applied: bool
    resend: bool
    resource_id: str | None
    reason: str | None
    allow_unreadable: bool
    yes: bool

    @property
    def has_decision(self) -> bool:
        return self.applied or self.not_applied or self.resend

    def check(self) -> None:
        """Raise EscrowctlError `ErrorCode.BAD_VALUE` if options contradict each other or the reason is missing."""
        if self.applied + self.not_applied + self.resend > 1:
            raise bad_value("use only one of --applied, --not-applied and --resend.")
        if self.resource_id is not None and not self.applied:
            raise bad_value("use --id only with --applied.")
        if self.has_decision and self.reason is None:
            raise bad_value('a decision needs a reason: add --reason TEXT, such as --reason "support ticket 5512".')
        if (self.reason is not None or self.allow_unreadable) and not self.has_decision:
            raise bad_value("use --reason and --allow-unreadable only with --applied, --not-applied or --resend.")


def resolve(
    context: typer.Context,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's name, such as j12.")],
    applied: Annotated[bool, typer.Option("--applied", help="Record that the write was done.")] = False,
    resource_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="With --applied: the id of the created escrow.")
    ] = None,
    not_applied: Annotated[bool, typer.Option("--not-applied", help="Record that the write was not done.")] = False,
    resend: Annotated[
        bool, typer.Option("--resend", help="Send the write again, under the same idempotency key.")
    ] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="A reason to store in the journal.")] = None,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Record the decision without reading first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Resolve a write whose outcome is unknown.

    Without --applied, --not-applied and --resend, escrowctl reads at the service. If this proves the
    outcome, escrowctl records the outcome. If not, the outcome stays unknown, and the command fails.

    \b
    Examples:
      escrowctl journal resolve j12
      escrowctl journal resolve j12 --applied --id tx_1 --reason "ticket 5512"
      escrowctl journal resolve j12 --not-applied --reason "ticket 5512"
    """
    session = session_of(context)
    created_id = parse_id(resource_id) if resource_id is not None else None
    options = _Options(
        applied, not_applied, resend, created_id, check_text(reason, name="--reason"), allow_unreadable, yes
    )
    options.check()
    found = require_entry(session, parse_entry_name(entry))
    if not (_may_settle(found, options) or _has_misread_id(session, found, options)):
        if found.state is State.IN_FLIGHT:
            raise identical_in_flight(found)
        if options.has_decision:
            known_id = found.settlement.result_id
            was_sent_again = any(event.state is State.NOT_APPLIED for event in found.history)
            if was_sent_again and known_id is not None and created_id not in (None, known_id):
                message = f"{found.name} was recorded as not applied, sent again, and created {known_id}"
                message = f"{message}: if {created_id} is of an earlier attempt, it was applied twice."
                raise EscrowctlError(ErrorCode.CHECK_FAILED, message, effect=Effect.NOTHING_RECORDED, facts=found.facts)
            message = f"{found.name} already has an outcome: {describe_state(found)}."
            look = command(f"journal show {found.name}")
            raise not_sent(ErrorCode.ALREADY_DONE, message, effect=Effect.NOTHING_RECORDED, hint=look)
        session.show(view_resolved(found))
        return
    _check_entry(session, found, options)
    session.service.refuse_key(options.reason, created_id)
    with session.signals.held():
        try:
            settled = _settle_entry(session, found, options)
        except Stopped as stopped:
            unchanged = f"{found.name} is still recorded as {found.state.label}. Nothing was sent or recorded."
            raise Stopped(stopped.code, stopped.progress or unchanged) from None
        session.show(view_resolved(settled), done=f"the journal now records {settled.name} as {settled.state.label}")
        if (difference := find_difference_error(settled)) is not None:
            raise difference
        if found.state is State.NOT_APPLIED:
            # The write may have been sent again meanwhile, as another entry.
            pairs = find_pairs_with(list_duplicates(session.journal), [settled])
            if pairs:
                raise make_duplicates_error(session, pairs, settled.name, "The decision was recorded.")


def _settle_entry(session: Session, entry: Entry, options: _Options) -> Entry:
    origin = session.service.origin
    reading = f"reading {origin} before anything is sent" if options.resend else f"reading {origin}; no write is sent"
    resolver = EntryResolver(
        session.writer,
        announce=lambda: session.console.note("reading", reading),
        report=lambda message: session.console.note("found", message, label="found"),
    )
    if options.resend:
        # A write that cannot be sent is refused before anything is read or asked.
        resolver.restore_sendable_request(entry)
    if options.applied or options.not_applied:
        decision, unread = _make_decision(session, options), options.allow_unreadable
        if options.applied:
            return resolver.record_applied(entry, decision, resource_id=options.resource_id, allow_unreadable=unread)
        confirm = partial(_confirm_not_applied, session, entry, yes=options.yes)
        return resolver.record_not_applied(entry, decision, allow_unreadable=unread, confirm=confirm)
    resolution = Resolution(entry, "nothing was read.")
    if not options.allow_unreadable:
        resolution = resolver.read_and_settle(entry, resend=options.resend)
    if resolution.is_settled:
        return resolution.entry
    if entry.state is State.DONE:
        kind = kind_of(entry.intent.operation)
        hints: Sequence[Hint] = _advise_support(entry)
        if not kind.proving_statuses(session.service):
            hints = (*advise_proving_status(session.service, entry.intent.past_participle), *hints)
        raise EscrowctlError(
            kind.unconfirmed_code,
            f"the service accepted the {entry.intent.verb} ({entry.name}), but no reading has confirmed it: "
            f"{resolution.why_unsettled}",
            hint=tuple(hints[:2]),
            outcome=Outcome.DONE,
            facts=entry.facts,
        )
    if not options.resend:
        raise _unknown_error(session, resolution)
    return _resend(session, resolver, entry, options)


def _may_settle(entry: Entry, options: _Options) -> bool:
    """Whether these options may settle the entry. All may settle an unknown entry.

    Only --applied may settle an entry that is not applied. --not-applied may settle a done entry that no read
    verified. If that entry is a once-only write, a read may settle it too; --applied may if it is unconfirmed.
    """
    if entry.state is State.NOT_APPLIED:
        # This correction sends nothing.
        return options.applied
    if entry.state is not State.DONE or entry.settlement.verified:
        return entry.state is State.UNKNOWN
    if options.applied:
        return entry.intent.is_once_only and entry.is_unconfirmed
    return options.not_applied or (not options.has_decision and entry.intent.is_once_only)


def _has_misread_id(session: Session, entry: Entry, options: _Options) -> bool:
    """Whether the entry is a create, and the profile finds another id in the stored reply than the recorded id."""
    if options.not_applied or options.resend or entry.intent.operation != CREATE_TRANSACTION.name:
        return False
    with suppress(EscrowctlError):
        service = session.service
        return entry.intent.goes_to_service(service.journal_names) and find_misread_id(entry, service) is not None
    return False


def _resend(session: Session, resolver: EntryResolver, entry: Entry, options: _Options) -> Entry:
    """Ask for confirmation unless --yes is given, then send the write again."""
    kind = kind_of(entry.intent.operation)
    if not options.yes:
        money = entry.intent.money
        answer = str(money.amount) if session.service.live and money else entry.name
        session.prompt.confirm(
            [
                f"  {entry.name}   {entry.intent.verb}   {money or entry.intent.resource_id or entry.intent.url}"
                f"   sent {entry.shown_sent_at or 'at a time not known'}",
                f"If {entry.name} is sent again, the service may {kind.repeat_risk}.",
                f"To send it again, type {answer}:",
            ],
            answer,
            why=f"sending {entry.name} again needs confirmation",
            declined=f"the outcome of {entry.name} is still unknown",
        )
    request = resolver.restore_sendable_request(entry)
    decision, unread = _make_decision(session, options), options.allow_unreadable
    result = resolver.send_again(entry, decision, has_asked=not options.yes, allow_unreadable=unread)
    if request.operation.is_once_only and not result.sent_entry.settlement.verified:
        result = session.pipeline.read_back(request, result)
        note_result(session, request.operation, request.resource_id or "", result)
    if result.sent_entry.state is not State.DONE:
        raise write_failure(session.service, result)
    has_known_key = session.service.deduplicates and not entry.is_recorded_later
    if kind.needs_id and len(result.sent_entry.request_ids) > 1 and not has_known_key:
        warning = f"an earlier attempt of {entry.name} may have arrived too: the service may {kind.repeat_risk}"
        session.console.note("sent_before", warning, important=True)
    return result.sent_entry


def _make_decision(session: Session, options: _Options) -> OperatorDecision:
    assert options.reason is not None, "`check` requires it"
    return OperatorDecision(session.runtime.operator, options.reason)


def _confirm_not_applied(session: Session, entry: Entry, doubts: list[str], *, yes: bool) -> None:
    """Show the doubts about --not-applied. Ask for confirmation unless --yes is given."""
    for doubt in doubts:
        session.console.note("doubt", doubt, label="found", important=True)
    if yes:
        return
    verb, name = entry.intent.verb, entry.name
    session.prompt.confirm(
        [f"After {name} is recorded as not applied, the same {verb} can be sent again. To record that, type {name}:"],
        entry.name,
        why=f"--not-applied for {entry.name} is in doubt and needs confirmation",
        declined=f"{entry.name} is still recorded as {entry.state.label}",
    )


def _check_entry(session: Session, entry: Entry, options: _Options) -> None:
    """Raise `ErrorCode.BAD_VALUE` if the entry is not of the chosen service, or may be of another account.

    Also raise it if --id is missing for a create, or differs from the id of the entry.
    """
    intent = entry.intent
    if options.applied and intent.operation == CREATE_TRANSACTION.name and options.resource_id is None:
        raise bad_value(f"{entry.name} is a create: --applied needs --id, the id of the escrow that it created.")
    if intent.resource_id is not None and options.resource_id not in (None, intent.resource_id):
        raise bad_value(
            f"{entry.name} is a {intent.verb} of {intent.resource_id}, not of {options.resource_id}: leave --id out."
        )
    service = session.service
    if not intent.goes_to_service(service.journal_names) or (options.resend and not service.covers_url(intent.url)):
        raise bad_value(
            f"{entry.name} was sent to {intent.url} (profile {intent.profile}), "
            f"but the chosen service is {service.origin}.",
            effect=Effect.NOTHING_SENT_NOW,
            hint=_advise_service(session, entry),
        )
    if not ((options.allow_unreadable and not options.resend) or account_of(service).is_same(intent.account)):
        raise bad_value(
            f"{entry.name} (profile {intent.profile}) was not sent with the current API key, or its key is not "
            "recorded. The current key may belong to another account, so escrowctl read nothing.",
            effect=Effect.NOTHING_SENT_NOW,
            hint=(
                _advise_service(session, entry),
                Hint("add --allow-unreadable to --applied or --not-applied", "to decide without asking the service"),
            ),
        )


def _advise_service(session: Session, entry: Entry) -> str | Hint:
    """Return the command that resolves an entry at its own service. In the sandbox, return "": no command can."""
    if session.options.sandbox:
        return ""
    profile, resolve = entry.intent.profile, f"journal resolve {entry.name}"
    if profile in session.resolver.profiles and profile != session.service.name:
        return f"{session.invocation.program} -p {profile} {resolve}"
    # Quoted, because the URL of an imported entry may contain any text.
    origin = shlex.quote("/".join(entry.intent.url.split("/")[:3]))
    label = f"set ESCROWCTL_API_KEY to the key that sent {entry.name}, then"
    return Hint(f"ESCROWCTL_BASE_URL={origin} {session.invocation.program} {resolve}", label)


def _advise_support(entry: Entry, likely_id: str | None = None) -> tuple[Hint, Hint]:
    """Return the two commands that record what the service's support says. `likely_id`: the created escrow's id."""
    kind, resolve = kind_of(entry.intent.operation), f"journal resolve {entry.name}"
    with_id = f" --id {shlex.quote(likely_id or 'ID')}" if kind.needs_id else ""
    was_done, was_not_done = kind.support_answers
    return (
        command(f"{resolve} --applied{with_id} --reason TEXT", f"if the service's support says that {was_done}"),
        command(f"{resolve} --not-applied --reason TEXT", f"if the support says that {was_not_done}"),
    )


def _unknown_error(session: Session, resolution: Resolution) -> EscrowctlError:
    entry = resolution.entry
    status, kind = entry.settlement.http_status, kind_of(entry.intent.operation)
    hints: Sequence[Hint] = _advise_support(entry, resolution.likely_id)
    if kind.needs_id and status in SUCCESS_STATUSES and entry.settlement.reply is not None:
        setting = advise_setting(session.service, "reply.id", "/FIELD", "if a field of the reply has the id")
        hints = (*setting, command(f"journal show {entry.name}", f"the service replied {status}: to see the reply"))
    elif resolution.has_unreadable:
        hints = (command("doctor --tx ID", "to find the fields of a record"), *hints)
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the outcome of {entry.name} is still unknown: {resolution.why_unsettled}",
        hint=tuple(hints[:2]),
        outcome=Outcome.UNKNOWN,
        facts=entry.facts,
    )
