"""What to type to change a setting of the service's profile."""

import re
import shlex

from escrowctl.config.service import Service
from escrowctl.contract.json import encode
from escrowctl.errors import Hint, command

_WORD = re.compile(r"[\w.-]+")


def advise_setting(service: Service, name: str, value: str, goal: str) -> tuple[Hint, ...]:
    """Return how a setting gets a value, for a `goal`; where no profile is in use, how one comes to be in use first.

    Nothing for the built-in sandbox, which has no settings.
    """
    words = f"config set {name} {value}"
    if service.profile is not None:
        return (command(words, goal),)
    if service.sandbox:
        return ()
    created, used = _use_profile(service, goal)
    return (created, command(f"{words} -p NAME", "then", bare=True), used)


def advise_proving(service: Service, done: str) -> tuple[Hint, ...]:
    """Return how it is set which status proves a write; none is filled in, for a wrong one would prove too much."""
    return advise_setting(service, f"status.{done}", "STATUS", f"to set which status means {done}")


def _use_profile(service: Service, goal: str) -> tuple[Hint, Hint]:
    """Return how a profile comes to be in use; the one that is the default may be another service's."""
    login = f"auth login -p NAME --base-url {shlex.quote(service.origin.base_url)}"
    return (
        command(login, f"{goal}, first create a profile", bare=True),
        Hint("set ESCROWCTL_PROFILE=NAME, instead of ESCROWCTL_BASE_URL", "and use it"),
    )


def advise_not_pending(service: Service, status: str) -> tuple[Hint, ...]:
    """Return how a status is taken out of those that mean a write is in progress; `config set` only adds to them."""
    if service.sandbox:
        return ()
    others = ", ".join(f'"{one}"' for one in sorted(service.pending - {status.casefold()}))
    why = f"if {status} does not mean that"
    line = f"status.pending = [{others}]"
    if service.profile is not None:
        return (Hint(f"write {line} into its profile in config.toml", why),)
    return (*_use_profile(service, why), Hint(f"write {line} into that profile in config.toml", "then"))


def advise_pending(service: Service, status: str, verb: str) -> tuple[Hint, ...]:
    """Return how a status is added to those that mean a write is in progress; none for one that means it failed."""
    if service.is_failed(status) or service.is_pending(status):
        return ()
    meaning = f"if {status} means that the {verb} is in progress"
    # A comma would make it two.
    value = status if _WORD.fullmatch(status) else encode([status])
    return advise_setting(service, "status.pending", shlex.quote(value), meaning)
