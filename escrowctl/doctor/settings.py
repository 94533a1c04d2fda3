"""Checks without the network: config file, chosen service, key, settings and file modes."""

import contextlib
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from escrowctl.config.effective import BUILT_IN, Setting
from escrowctl.config.file import require_trusted
from escrowctl.config.keys import FoundKey
from escrowctl.config.settings import Choice, Resolver
from escrowctl.doctor.finding import Finding, Verdict, fail
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command

_WAYS_ON = (
    command("auth login", "with an account", bare=True),
    command("--sandbox doctor", "without an account", bare=True),
)

_CHECKED_APART = frozenset({"profile", "default_profile", "base_url", "api_key", "proxy"})


def check_config(resolver: Resolver) -> Finding:
    """Check that config.toml is valid."""
    try:
        path = resolver.config_path
    except EscrowctlError as error:
        return fail("config", error)
    try:
        config = resolver.config
    except EscrowctlError as error:
        edit = (Hint(f"vi {shlex.quote(str(path))}", "correct it"),) if error.code is ErrorCode.BAD_CONFIG else ()
        return fail("config", error)._replace(hints=error.hints or edit)
    if config is None:
        return Finding("config", Verdict.SKIPPED, f"there is no {path}")
    names = ", ".join(config.profiles) or "none"
    return Finding("config", Verdict.OK, f"{path} is valid; profiles: {names}")


def choose_service(resolver: Resolver) -> tuple[Finding, Choice | None]:
    """Check which service the command line, the environment or the default profile chooses."""
    try:
        choice = resolver.choose()
    except EscrowctlError as error:
        if error.code is ErrorCode.NOT_CONFIGURED:
            error.hints = _WAYS_ON
        return fail("base_url", error), None
    return Finding("base_url", Verdict.OK, f"{choice.origin.base_url}, {choice.mode} (from {choice.source})"), choice


def find_key(resolver: Resolver, choice: Choice) -> tuple[Finding, FoundKey | None]:
    """Check that there is a key for the service, and that no other user can read it."""
    try:
        found = resolver.find_key(choice)
    except EscrowctlError as error:
        return fail("key", error), None
    return Finding("key", Verdict.OK, f"from {found.source}"), found


def check_settings(list_settings: Callable[[], Sequence[Setting]]) -> Iterator[Finding]:
    """Check the sources of the settings, and whether they can confirm a release of real money."""
    try:
        settings = [setting for setting in list_settings() if setting.value is not None]
    except EscrowctlError as error:
        yield fail("settings", error)
        return
    yield _say_origins(settings)
    values = {name: value for name, value, _ in settings}
    if values.get("mode") == "live" and not values.get("status.released"):
        yield Finding(
            "released",
            Verdict.WARNING,
            "status.released is not set: each release ends as accepted, not confirmed",
            (command("help settings", bare=True),),
        )


def _say_origins(settings: Sequence[Setting]) -> Finding:
    """Return the sources of the settings, without built-in ones and those with a separate check."""
    by_origin: dict[str, list[str]] = {}
    for name, _, origin in settings:
        if name not in _CHECKED_APART and not origin.startswith(BUILT_IN):
            by_origin.setdefault(origin, []).append(name)
    parts = [f"{', '.join(names)} from {origin}" for origin, names in by_origin.items()]
    return Finding("settings", Verdict.OK, "; ".join([*parts, "all others built in" if parts else "all built in"]))


def list_files(resolver: Resolver, choice: Choice | None, environ: Mapping[str, str]) -> list[Path]:
    """Return the config file, the stored keys and the key file of the chosen service, if they exist."""
    found: list[Path | None] = []
    with contextlib.suppress(EscrowctlError):
        found += [resolver.config_path, resolver.credentials.path]
        found.append(resolver.find_key_file(choice) if choice else None)
    found.append(Path(environ["ESCROWCTL_API_KEY_FILE"]) if environ.get("ESCROWCTL_API_KEY_FILE") else None)
    return [path for path in found if path is not None and path.exists()]


def check_files(resolver: Resolver, files: Sequence[Path]) -> Iterator[Finding]:
    """Check which users can read the stored keys and change the config file; `find_key` checks the file of a key."""
    flaws = []
    for check in (lambda: require_trusted(resolver.config_path), lambda: resolver.credentials.read()):
        try:
            check()
        except EscrowctlError as error:
            flaws.append(fail("files", error))
    if flaws:
        yield from dict.fromkeys(flaws)
    elif files:
        yield Finding("files", Verdict.OK, ", ".join(map(_describe, files)))
    else:
        yield Finding("files", Verdict.SKIPPED, "no config file, no stored keys, no key file")


def _describe(path: Path) -> str:
    """Return name, mode and owner of a file."""
    status = path.stat()
    owner = "yours" if status.st_uid == os.geteuid() else "root's"
    return f"{path.name} {stat.S_IMODE(status.st_mode):04o} ({owner})"
