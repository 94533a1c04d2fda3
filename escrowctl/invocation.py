"""The start of commands in hints."""

import shlex

from escrowctl.errors import Invocation
from escrowctl.options import SharedOptions
from escrowctl.runtime import Runtime


def read_invocation(runtime: Runtime, options: SharedOptions) -> Invocation:
    """Return the program as it was called, with the options and variables that select this journal and service."""
    program = shlex.join([*runtime.program, *_list_given_options(("--config", options.config))])
    service_options = ["--sandbox"] if options.sandbox else []
    service_options += _list_given_options(("-p", options.profile), ("--base-url", options.base_url))
    # These variables may be set for this command only. Without them, the pasted command would use another journal.
    program = f"{_format_assignments(runtime, 'ESCROWCTL_HOME', 'ESCROWCTL_CONFIG')} {program}".strip()
    # In the shell of a person who reads a CI job's log, the job's variables are not set.
    is_job = runtime.environ.get("CI") and not options.sandbox
    service_variables = () if service_options else ("ESCROWCTL_PROFILE", "ESCROWCTL_BASE_URL", "ESCROWCTL_API_KEY_FILE")
    job_variables = ("ESCROWCTL_JOURNAL_ID", "ESCROWCTL_API_KEY_FILE", "ESCROWCTL_STATUS_RELEASED") if is_job else ()
    variables = _format_assignments(runtime, *dict.fromkeys((*service_variables, *job_variables)))
    if is_job and service_variables and runtime.environ.get("ESCROWCTL_API_KEY"):
        variables += " ESCROWCTL_API_KEY_FILE=FILE"
    return Invocation(program, shlex.join(service_options), variables)


def _list_given_options(*options: tuple[str, str | None]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, value)]


def _format_assignments(runtime: Runtime, *names: str) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name in names if (value := runtime.environ.get(name)))
