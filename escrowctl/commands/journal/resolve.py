"""`escrowctl journal resolve`: find or record the outcome of a write that is unknown."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from escrowctl.client.http import SUCCESS
from escrowctl.commands.journal.duplicates import done_twice, pairs_with
from escrowctl.commands.journal.listing import find_entry
from escrowctl.commands.rows import describe_state, view_resolved
from escrowctl.commands.tx.release import note_result
from escrowctl.commands.writing import check_text
from escrowctl.config.advice import advise_proving, advise_setting
from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, Outcome, Stopped, bad_value, command, not_sent
from escrowctl.journal.duplicates import list_duplicates
from escrowctl.journal.guards import busy
from escrowctl.journal.model import Entry, State, parse_entry_name
from escrowctl.session import Session, session_of
from escrowctl.writes.kinds import kind_of

if TYPE_CHECKING:
    from escrowctl.journal.model import OperatorDecision
    from escrowctl.writes.resolve import EntryResolver, Resolution


class _Chosen(NamedTuple):
    """The operator's decision: at most one of the first three, and the reason."""

    applied: bool
    not_applied: bool
    resend: bool
    resource_id: str | None
    reason: str | None
    allow_unreadable: bool
    yes: bool

    @property
    def is_given(self) -> bool:
        return self.applied or self.not_applied or self.resend

    def check(self) -> None:
        """Raise EscrowctlError `ErrorCode.BAD_VALUE` if options contradict each other or the reason is missing."""
        if self.applied + self.not_applied + self.resend > 1:
            raise bad_value("use only one of --applied, --not-applied and --resend.")
        if self.resource_id is not None and not self.applied:
            raise bad_value("use --id only with --applied.")
        if self.is_given and self.reason is None:
            raise bad_value('a decision needs a reason: add --reason TEXT, such as --reason "support ticket 5512".')
        if (self.reason is not None or self.allow_unreadable) and not self.is_given:
            raise bad_value("use --reason and --allow-unreadable only with --applied, --not-applied or --resend.")

    def check_id(self, entry: Entry) -> None:
        """Raise `ErrorCode.BAD_VALUE` if --applied lacks the id that a create needs, or --id is of another record."""
        intent = entry.intent
        if self.applied and intent.operation == CREATE_TRANSACTION.name and self.resource_id is None:
            raise bad_value(f"{entry.name} is a create: --applied needs --id, the id of the escrow that it created.")
        if intent.resource_id is not None and self.resource_id not in (None, intent.resource_id):
            raise bad_value(
                f"{entry.name} is a {intent.verb} of {intent.resource_id}, not of {self.resource_id}: leave --id out."
            )


def resolve(
    context: typer.Context,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's name, such as j12.")],
    applied: Annotated[bool, typer.Option("--applied", help="Record that the service did it.")] = False,
    resource_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="With --applied: the id of the created escrow.")
    ] = None,
    not_applied: Annotated[bool, typer.Option("--not-applied", help="Record that the service did not do it.")] = False,
    resend: Annotated[
        bool, typer.Option("--resend", help="Send it once more, under the same idempotency key.")
    ] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; stored in the journal.")] = None,
    allow_unreadable: Annotated[
        bool, typer.Option("--allow-unreadable", help="Record the decision without reading first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Resolve a write whose outcome is unknown.

    Without a decision it reads at the service, and records what the service proves. If the outcome is still
    unknown, it exits with 12.

    \b
    Examples:
      escrowctl journal resolve j12
      escrowctl journal resolve j12 --applied --id tx_1 --reason "ticket 5512"
      escrowctl journal resolve j12 --not-applied --reason "ticket 5512"
    """
    session = session_of(context)
    made = parse_id(resource_id) if resource_id is not None else None
    chosen = _Chosen(applied, not_applied, resend, made, check_text(reason, name="--reason"), allow_unreadable, yes)
    chosen.check()
    found = find_entry(session, parse_entry_name(entry))
    if not (_is_open(found, chosen) or _is_misread(session, found, chosen)):
        if found.state is State.IN_FLIGHT:
            raise busy(found)
        if chosen.is_given:
            raise not_sent(
                ErrorCode.ALREADY_DONE,
                f"{found.name} already has an outcome: {describe_state(found)}.",
                effect=Effect.NOTHING_RECORDED,
                hint=command(f"journal show {found.name}"),
            )
        session.show(view_resolved(found))
        return
    chosen.check_id(found)
    _require_own_service(session, found, chosen)
    session.service.refuse_key(chosen.reason, made)
    from escrowctl.writes.create import find_difference

    with session.signals.held():
        try:
            settled = _settle(session, found, chosen)
        except Stopped as stopped:
            unchanged = f"{found.name} is still recorded as {found.state.value}. Nothing was sent or recorded."
            raise Stopped(stopped.code, stopped.standing or unchanged) from None
        session.show(view_resolved(settled), done=f"the journal now records {settled.name} as {_words(settled)}")
        if (difference := find_difference(settled)) is not None:
            raise difference
        if found.state is State.NOT_APPLIED:
            # It may have been sent again meanwhile, as another entry.
            pairs = pairs_with(list_duplicates(session.journal), [settled])
            if pairs:
                raise done_twice(session, pairs, settled.name, "The decision was recorded.")


def _words(entry: Entry) -> str:
    return entry.state.value.replace("_", " ")


def _settle(session: Session, entry: Entry, chosen: _Chosen) -> Entry:
    from escrowctl.writes.resolve import EntryResolver, Resolution

    when = " before anything is sent" if chosen.resend else "; no write is sent"
    resolver = EntryResolver(
        session.service,
        reader=session.reader,
        writer=session.writer,
        announce=lambda: session.console.note("reading", f"reading {session.service.origin}{when}"),
        report=lambda message: session.console.note("found", message, word="found"),
    )
    if chosen.resend:
        # Refused before anything is read or asked.
        resolver.require_sendable(entry)
    if chosen.applied or chosen.not_applied:
        decision, unreadable = _decision(chosen), chosen.allow_unreadable
        if chosen.applied:
            return resolver.record_applied(entry, decision, resource_id=chosen.resource_id, allow_unreadable=unreadable)
        return resolver.record_not_applied(
            entry,
            decision,
            allow_unreadable=unreadable,
            confirm=lambda doubts: _confirm_not_applied(session, entry, doubts, yes=chosen.yes),
        )
    resolution = None if chosen.allow_unreadable else resolver.look(entry, resend=chosen.resend)
    if resolution is not None and resolution.is_settled:
        return resolution.entry
    resolution = resolution or Resolution(entry, "nothing was read.")
    if entry.state is State.DONE:
        raise _still_unconfirmed(session, entry, resolution.sentence)
    if not chosen.resend:
        raise _still_unknown(session, resolution)
    asked = _confirm_resend(session, entry, chosen)
    return _resend(session, resolver, entry, chosen, asked=asked)


def _is_open(entry: Entry, chosen: _Chosen) -> bool:
    """Whether the entry can be settled: it is unknown, "not applied" is to be corrected, or no reading verified "done".

    In the last case, a once-only write is read again or confirmed with --applied; --not-applied overrides any write.
    """
    if entry.state is State.NOT_APPLIED:
        # A wrong decision can be corrected only to "applied": that sends nothing.
        return chosen.applied
    if entry.state is not State.DONE or entry.settlement.verified:
        return entry.state is State.UNKNOWN
    if chosen.applied:
        return entry.intent.is_once_only and entry.is_unconfirmed
    return chosen.not_applied or (not chosen.is_given and entry.intent.is_once_only)


def _is_misread(session: Session, entry: Entry, chosen: _Chosen) -> bool:
    """Whether a create is recorded with another id than the current profile finds in its reply."""
    if chosen.not_applied or chosen.resend or entry.intent.operation != CREATE_TRANSACTION.name:
        return False
    from escrowctl.writes.create import find_other_id

    with suppress(EscrowctlError):
        return entry.intent.is_known_as(session.service.names) and find_other_id(entry, session.service) is not None
    return False


def _still_unconfirmed(session: Session, entry: Entry, sentence: str) -> EscrowctlError:
    hints: Sequence[Hint] = _ask_support(entry)
    if not session.service.released:
        hints = (*advise_proving(session.service, entry.intent.done), *hints)
    return EscrowctlError(
        kind_of(entry.intent.operation).unconfirmed,
        f"the service accepted the {entry.intent.verb} ({entry.name}), but no reading has confirmed it: {sentence}",
        hint=tuple(hints[:2]),
        outcome=Outcome.DONE,
        facts=entry.facts,
    )


def _resend(session: Session, resolver: "EntryResolver", entry: Entry, chosen: _Chosen, *, asked: bool) -> Entry:
    from escrowctl.writes.result import write_failure

    request = resolver.require_sendable(entry)
    result = resolver.send_again(entry, _decision(chosen), asked=asked, allow_unreadable=chosen.allow_unreadable)
    if request.operation.once_only and not result.sent.settlement.verified:
        result = session.pipeline.read_back(request, result)
        note_result(session, request.resource_id or "", result)
    if result.sent.state is not State.DONE:
        raise write_failure(session.service, result)
    kind = kind_of(request.operation.name)
    if kind.needs_id and len(result.sent.requests) > 1 and not session.service.deduplicates:
        before = (
            f"{entry.name} was sent before, with an unknown outcome: if it arrived then, the service may {kind.twice}"
        )
        session.console.note("sent_before", before, important=True)
    return result.sent


def _decision(chosen: _Chosen) -> "OperatorDecision":
    from escrowctl.journal.model import OperatorDecision
    from escrowctl.writes.intents import operator_name

    assert chosen.reason is not None, "checked with the line"
    return OperatorDecision(operator_name(), chosen.reason)


def _confirm_not_applied(session: Session, entry: Entry, doubts: list[str], *, yes: bool) -> None:
    """Report the doubts about the decision, and ask for confirmation unless --yes is given."""
    for doubt in doubts:
        session.console.note("doubt", doubt, word="found", important=True)
    if yes:
        return
    verb = entry.intent.verb
    session.prompt.confirm(
        [f"As not applied, the same {verb} can be sent again. To record that, type {entry.name}:"],
        entry.name,
        why=f"something speaks against --not-applied for {entry.name}, so it needs confirmation",
        declined=f"{entry.name} is still recorded as {_words(entry)}",
    )


def _confirm_resend(session: Session, entry: Entry, chosen: _Chosen) -> bool:
    """Ask for confirmation unless --yes is given. Return whether the question was asked."""
    if chosen.yes:
        return False
    money = entry.intent.money
    word = str(money.amount) if session.service.live and money else entry.name
    session.prompt.confirm(
        [
            f"  {entry.name}   {entry.intent.verb}   {money or entry.intent.resource_id or entry.intent.url}"
            f"   sent {entry.sent_at}",
            f"If {entry.name} is sent again, the service may {kind_of(entry.intent.operation).twice}.",
            f"To send it again, type {word}:",
        ],
        word,
        why=f"sending {entry.name} again needs confirmation",
        declined=f"the outcome of {entry.name} is still unknown",
    )
    return True


def _require_own_service(session: Session, entry: Entry, chosen: _Chosen) -> None:
    """Raise `ErrorCode.BAD_VALUE` if it was sent to another service, or the current key may be of another account."""
    from escrowctl.writes.intents import account_of

    service, intent = session.service, entry.intent
    if not intent.is_known_as(service.names) or (chosen.resend and not service.is_at(intent.url)):
        raise bad_value(
            f"{entry.name} was sent to {intent.url} (profile {intent.profile}), "
            f"but the chosen service is {service.origin}.",
            effect=Effect.NOTHING_SENT_NOW,
            hint=_way_there(session, entry),
        )
    is_decision_alone = chosen.allow_unreadable and not chosen.resend
    if not (is_decision_alone or account_of(service).is_same(intent.account)):
        raise bad_value(
            f"{entry.name} (profile {intent.profile}) was sent with another API key, or the journal does not know "
            "which. The current key may belong to another account, so escrowctl read nothing.",
            effect=Effect.NOTHING_SENT_NOW,
            hint=(
                _way_there(session, entry),
                Hint("add --allow-unreadable to --applied or --not-applied", "to decide without asking the service"),
            ),
        )


def _way_there(session: Session, entry: Entry) -> str | Hint:
    """Return a command for the service that an entry was sent to; "" in the sandbox, because no option helps there."""
    if session.options.sandbox:
        return ""
    profile, resolve = entry.intent.profile, f"journal resolve {entry.name}"
    if profile in session.resolver.profiles and profile != session.service.name:
        return f"{session.invocation.program} -p {profile} {resolve}"
    # Quoted, because the URL of an imported entry may contain any text.
    origin = shlex.quote("/".join(entry.intent.url.split("/")[:3]))
    return Hint(
        f"ESCROWCTL_BASE_URL={origin} {session.invocation.program} {resolve}",
        f"set ESCROWCTL_API_KEY to the key that sent {entry.name}, then",
    )


def _ask_support(entry: Entry, known: str | None = None) -> tuple[Hint, Hint]:
    """Return how to record the answer of the service's support. `known`: the id that the escrow probably has."""
    kind, resolve = kind_of(entry.intent.operation), f"journal resolve {entry.name}"
    created = f" --id {shlex.quote(known or 'ID')}" if kind.needs_id else ""
    was, was_not = kind.answers
    return (
        command(f"{resolve} --applied{created} --reason TEXT", f"if the service's support says that {was}"),
        command(f"{resolve} --not-applied --reason TEXT", f"if it says that {was_not}"),
    )


def _still_unknown(session: Session, resolution: "Resolution") -> EscrowctlError:
    entry = resolution.entry
    status, kind = entry.settlement.http_status, kind_of(entry.intent.operation)
    hints: Sequence[Hint] = _ask_support(entry, resolution.likely)
    if kind.needs_id and status in SUCCESS and entry.settlement.reply is not None:
        setting = advise_setting(session.service, "reply.id", "/FIELD", "if a field of the reply is the id")
        hints = (*setting, command(f"journal show {entry.name}", f"the service replied {status}: to see the reply"))
    elif resolution.is_unread:
        hints = (command("doctor --tx ID", "to find the fields of a record"), *hints)
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the outcome of {entry.name} is still unknown: {resolution.sentence}",
        hint=tuple(hints[:2]),
        outcome=Outcome.UNKNOWN,
        facts=entry.facts,
    )
