"""Hints: the commands that change a setting of the service's profile."""

import re
import shlex

from escrowctl.config.service import Service
from escrowctl.contract.json import encode
from escrowctl.errors import Hint, command

_WORD = re.compile(r"[\w.-]+")


def advise_setting(service: Service, name: str, value: str, goal: str) -> tuple[Hint, ...]:
    """Return the commands that give a setting a value; `goal` says what for. Empty for the sandbox: it has no settings.

    If no profile is in use, the first command creates one.
    """
    words = f"config set {name} {value}"
    if service.profile is not None:
        return (command(words, goal),)
    if service.sandbox:
        return ()
    return (_create_profile(service, goal), command(f"{words} -p NAME", "then, with ESCROWCTL_PROFILE=NAME", bare=True))


def advise_proving(service: Service, done: str) -> tuple[Hint, ...]:
    """Return how to set the status that proves a write. It suggests no status: a wrong one would prove too much."""
    goal = f"to set which status means {done}"
    if service.profile is None and not service.sandbox:
        return (Hint(f"set ESCROWCTL_STATUS_{done.upper()}=STATUS", goal),)
    return advise_setting(service, f"status.{done}", "STATUS", goal)


def _create_profile(service: Service, goal: str) -> Hint:
    login = f"auth login -p NAME --base-url {shlex.quote(service.origin.base_url)}"
    return command(login, f"{goal}, first create a profile", bare=True)


def advise_not_pending(service: Service, status: str) -> tuple[Hint, ...]:
    """Return how to remove a status from `status.pending`, which `config set` only adds to. Empty for the sandbox."""
    if service.sandbox:
        return ()
    others = ", ".join(f'"{one}"' for one in sorted(service.pending - {status.casefold()}))
    why = f"if {status} does not mean that"
    line = f"status.pending = [{others}]"
    if service.profile is not None:
        return (Hint(f"write {line} into its profile in config.toml", why),)
    return (_create_profile(service, why),)


def advise_pending(service: Service, status: str, verb: str) -> tuple[Hint, ...]:
    """Return how to add a status to `status.pending`. Empty if it is there already, or means that a write failed."""
    if service.is_failed(status) or service.is_pending(status):
        return ()
    meaning = f"if {status} means that the {verb} is in progress"
    # A comma would make it two.
    value = status if _WORD.fullmatch(status) else encode([status])
    return advise_setting(service, "status.pending", shlex.quote(value), meaning)
