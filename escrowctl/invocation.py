"""How the commands that escrowctl prints for pasting start."""

import shlex

from escrowctl.errors import Invocation
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


def _typed(*options: tuple[str, str | None]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, value)]


def _assign(runtime: Runtime, *names: str) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name in names if (value := runtime.environ.get(name)))
