"""Which journal a run may use: the one whose id the environment or the profile names."""

from collections.abc import Mapping
from typing import NamedTuple

from escrowctl.config.settings import Choice, LineValues, Resolver
from escrowctl.errors import ErrorCode, EscrowctlError


class JournalPin(NamedTuple):
    """The id of the journal that is required, and which setting or variable says so."""

    journal_id: str
    source: str


def find_pins(resolver: Resolver, line: LineValues, environ: Mapping[str, str]) -> tuple[JournalPin, ...]:
    """Return the journal ids that are required; both apply, that of the environment and that of the profile.

    A test service requires none. Raises EscrowctlError as `Resolver.choose` does, but where no service is known.
    """
    choice = _choose_if_known(resolver, line)
    if choice is not None and choice.mode != "live":
        return ()
    pins = []
    # An empty one binds too: a job may lack the variable that it is filled from.
    if (named := environ.get("ESCROWCTL_JOURNAL_ID")) is not None:
        pins.append(JournalPin(named, "ESCROWCTL_JOURNAL_ID"))
    if choice is not None and choice.profile is not None and choice.profile.journal_id is not None:
        pins.append(JournalPin(choice.profile.journal_id, f"journal_id of profile {choice.profile_name}"))
    return tuple(pins)


def _choose_if_known(resolver: Resolver, line: LineValues) -> Choice | None:
    """Return the choice; None where nothing is configured, or the line names a profile that was removed."""
    if line.profile is not None and (resolver.config is None or line.profile not in resolver.config.profiles):
        return None
    try:
        return resolver.choose()
    except EscrowctlError as error:
        if error.code is ErrorCode.NOT_CONFIGURED:
            return None
        raise
