"""Which journal entries a command looks at: the options that several take, and what they come to."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from escrowctl.contract.operations import OPERATIONS, Access
from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.journal.model import Selection, State
from escrowctl.runtime import timestamp
from escrowctl.session import Session

_OPERATIONS = {
    one.verb if one.noun == "transaction" else one.noun: (one.name,) for one in OPERATIONS if one.access is Access.WRITE
} | {"call": ("call_post", "call_put", "call_patch", "call_delete")}
_AGO = {"m": 60, "h": 3600, "d": 86_400}

StateOption = Annotated[
    str | None, typer.Option("--state", metavar="STATE", help=f"Only this state: {', '.join(State)}.")
]
OperationOption = Annotated[
    str | None, typer.Option("--operation", metavar="WORD", help=f"Only this: {', '.join(_OPERATIONS)}.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Sent then or later: a date, a time, or 24h (ago).")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Sent before then.")]
ReferenceOption = Annotated[str | None, typer.Option("--reference", metavar="TEXT", help="Only this reference.")]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Only what was written to, or made, this.")]


def select(
    session: Session,
    limit: int,
    states: list[str],
    operation: str | None,
    since: str | None,
    until: str | None,
    reference: str | None,
    resource_id: str | None,
) -> Selection:
    """Return what the options ask for; raises EscrowctlError (exit 2) for a word or time that is none."""
    now = session.runtime.now()
    return Selection(
        limit=limit,
        states=tuple(_state(state) for state in states),
        profile=_profile(session),
        operations=_operations(operation) if operation is not None else (),
        since=_parse_moment(since, name="--since", now=now) if since is not None else None,
        until=_parse_moment(until, name="--until", now=now) if until is not None else None,
        reference=reference,
        resource_id=resource_id,
    )


def _profile(session: Session) -> str | None:
    """Return the profile that -p names; a name that nothing is known of is more likely a slip than an empty list."""
    name = session.options.profile
    if name is None or session.journal_to_read.select(Selection(1, profile=name)):
        return name
    config = session.resolver.config
    if config is None or name not in config.profiles:
        raise bad_value(f'there is no profile "{name}", and no entry in the journal under that name.')
    return name


def _state(word: str) -> State:
    try:
        return State(word)
    except ValueError:
        raise _not_one("--state", word, list(State)) from None


def _operations(word: str) -> tuple[str, ...]:
    found = _OPERATIONS.get(word)
    if found is None:
        raise _not_one("--operation", word, list(_OPERATIONS))
    return found


def _not_one(name: str, word: str, words: list[str]) -> EscrowctlError:
    return bad_value(f'{name} "{word}" is not one of {", ".join(words)}.')


def _parse_moment(text: str, *, name: str, now: datetime) -> str:
    """Return the timestamp of `2026-11-21` (UTC), of an RFC 3339 time, or of `24h` ago.

    Raises EscrowctlError (exit 2) otherwise.
    """
    try:
        if found := re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text, re.ASCII):
            return timestamp(now - timedelta(seconds=int(found[1]) * _AGO[found[2]]))
        moment = datetime.fromisoformat(text)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise bad_value(
            f'{name} "{text}" is not a time: write one such as 2026-11-21, 2026-11-21T03:12:44Z or 24h (ago).'
        ) from None
