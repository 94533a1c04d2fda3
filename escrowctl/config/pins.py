"""Which journal a run may use: the one whose id the environment or the profile names."""

from collections.abc import Mapping

from escrowctl.config.settings import LineValues, Resolver


def find_pins(resolver: Resolver, line: LineValues, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the required journal ids, of the environment and the profile; both apply. A test service requires none.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG`, `BAD_VALUE` or `STATE_UNUSABLE` for settings that cannot be used.
    """
    config, name = resolver.config, line.profile
    was_removed = name is not None and (config is None or name not in config.profiles)
    choice = None if was_removed else resolver.choose_if_configured()
    if choice is not None and choice.mode != "live":
        return ()
    pins = []
    # An empty id binds too: in a job, the variable that fills it may be missing.
    if (named := environ.get("ESCROWCTL_JOURNAL_ID")) is not None:
        pins.append((named, "ESCROWCTL_JOURNAL_ID"))
    if choice is not None and choice.profile is not None and choice.profile.journal_id is not None:
        pins.append((choice.profile.journal_id, f"journal_id of profile {choice.profile_name}"))
    return tuple(pins)
