"""What to type to change a setting of the service's profile."""

import shlex

from escrowctl.config.service import Service
from escrowctl.errors import Hint, command


def advise_setting(service: Service, name: str, value: str, goal: str) -> tuple[Hint, ...]:
    """Return how a setting gets a value, for a `goal`; where no profile is in use, how one comes to be in use first."""
    words = f"config set {name} {value}"
    if service.profile is not None:
        return (command(words, goal),)
    return (
        command("auth login", f"{goal}, first create a profile", bare=True),
        command(words, "then", bare=True),
        Hint("and use it: set ESCROWCTL_PROFILE to its name, instead of ESCROWCTL_BASE_URL"),
    )


def advise_pending(service: Service, status: str, verb: str) -> tuple[Hint, ...]:
    """Return how a status is added to those that mean a write is in progress; none for one that means it failed."""
    if service.is_failed(status) or service.is_pending(status):
        return ()
    meaning = f"if {status} means that the {verb} is in progress"
    return advise_setting(service, "status.pending", shlex.quote(status), meaning)
