"""Hints that say how to change a setting of the service's profile."""

import re
import shlex

from escrowctl.config.service import Service
from escrowctl.contract.json import encode
from escrowctl.errors import Hint, command

_PLAIN_STATUS = re.compile(r"[\w.-]+")


def advise_setting(service: Service, name: str, value: str, goal: str) -> tuple[Hint, ...]:
    """Return hints with the commands that set `name` to `value`. Empty for the sandbox, which has no settings.

    `goal` says why or when to run the commands. If no profile is in use, the first command creates a profile.
    """
    words = f"config set {name} {value}"
    if service.profile is not None:
        return (command(words, goal),)
    if service.sandbox:
        return ()
    then = command(f"{words} -p NAME", "then set ESCROWCTL_PROFILE=NAME and run", bare=True)
    return (_advise_new_profile(service, goal), then)


def advise_proving_status(service: Service, done: str) -> tuple[Hint, ...]:
    """Return hints on setting the status that means `done`, such as `released`. The status is left open."""
    goal = f"to set which status means {done}"
    if service.profile is None and not service.sandbox:
        return (Hint(f"set ESCROWCTL_STATUS_{done.upper()}=STATUS", goal),)
    return advise_setting(service, f"status.{done}", "STATUS", goal)


def _advise_new_profile(service: Service, goal: str) -> Hint:
    login = f"auth login -p NAME --base-url {shlex.quote(service.origin.base_url)}"
    return command(login, f"{goal}, first create a profile", bare=True)


def advise_remove_pending(service: Service, status: str) -> tuple[Hint, ...]:
    """Return hints on removing `status` from the setting `status.pending`. Empty for the sandbox."""
    if service.sandbox:
        return ()
    # Not a command: `config set` only adds to this list.
    others = ", ".join(f'"{other}"' for other in sorted(service.pending - {status.casefold()}))
    condition = f"if {status} does not mean that a release is in progress"
    if service.profile is not None:
        return (Hint(f"write status.pending = [{others}] into profile {service.profile} in config.toml", condition),)
    return (_advise_new_profile(service, condition),)


def advise_add_pending(service: Service, status: str, verb: str) -> tuple[Hint, ...]:
    """Return hints on adding `status` to `status.pending`, if it means that `verb` (a release) is in progress.

    Empty if the status already counts as pending or failed.
    """
    if service.is_failed(status) or service.is_pending(status):
        return ()
    condition = f"if {status} means that the {verb} is in progress"
    # Any other status is written as a list, because `config set` splits a text at its commas.
    value = status if _PLAIN_STATUS.fullmatch(status) else encode([status])
    return advise_setting(service, "status.pending", shlex.quote(value), condition)
