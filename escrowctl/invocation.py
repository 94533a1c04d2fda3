"""The commands that escrowctl prints for pasting: how they start, and the way on if nothing is configured."""

import shlex
from collections.abc import Sequence

from escrowctl.errors import Hint, Invocation, command
from escrowctl.options import SharedOptions
from escrowctl.runtime import Runtime


def read_invocation(runtime: Runtime, options: SharedOptions) -> Invocation:
    """Return the program as called, with the options and variables that select this journal and service."""
    program = shlex.join([*runtime.program, *_typed(("--config", options.config))])
    service = ["--sandbox"] if options.sandbox else []
    service += _typed(("-p", options.profile), ("--base-url", options.base_url))
    # They may be set for one line only. Without them the next line uses another journal, which also has a j1.
    program = f"{_assign(runtime, 'ESCROWCTL_HOME', 'ESCROWCTL_CONFIG')} {program}".strip()
    # The reader of a job's log does not have the job's variables.
    is_job = runtime.environ.get("CI") and not options.sandbox
    names = () if service else ("ESCROWCTL_PROFILE", "ESCROWCTL_BASE_URL", "ESCROWCTL_API_KEY_FILE")
    of_job = ("ESCROWCTL_JOURNAL_ID", "ESCROWCTL_API_KEY_FILE", "ESCROWCTL_STATUS_RELEASED") if is_job else ()
    leading = _assign(runtime, *dict.fromkeys((*names, *of_job)))
    if is_job and names and runtime.environ.get("ESCROWCTL_API_KEY"):
        leading += " ESCROWCTL_API_KEY_FILE=FILE"
    return Invocation(program, shlex.join(service), leading)


def advise_configuring(runtime: Runtime, words: Sequence[str], name: str) -> tuple[Hint, ...]:
    """Return the hints if nothing is configured. `words`: the line; `name`: its command.

    No --sandbox for `journal`: the journal of the sandbox does not record real money.
    """
    login = command("auth login", "with an account", bare=True)
    rehearsed = Hint(shlex.join([*runtime.program, "--sandbox", *words]), "without an account")
    return (login,) if name.split()[1:2] == ["journal"] else (login, rehearsed)


def _typed(*options: tuple[str, str | None]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, value)]


def _assign(runtime: Runtime, *names: str) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name in names if (value := runtime.environ.get(name)))
