"""Names that the shells offer at TAB: recent ids by profile, and the profiles themselves.

    <cache>/complete/profile                   the profiles of config.toml
    <cache>/complete/<profile>/transaction     ids seen under `-p <profile>`, newest first
    <cache>/complete/@default/..., @sandbox/...   without -p, with --sandbox

The shells read these files themselves and start nothing. What stands there may come from a service,
so only letters, digits, `_` and `-` get in, the last not in front, where it would make an option of
it; and the scripts look again: `compgen -W` would run `$(...)` found in its data. Nothing here may
fail a command or be waited for.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from escrowctl.config.folders import make_private_folder
from escrowctl.errors import EscrowctlError

MAX_NAMES = 500
DEFAULT = "@default"
SANDBOX = "@sandbox"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}", re.ASCII)
_SCOPE = re.compile(r"[A-Za-z0-9_-]{1,64}|@default|@sandbox", re.ASCII)
_MAX_BYTES = MAX_NAMES * 129


def remember_ids(cache: Path, scope: str, kind: str, ids: Iterable[str | None]) -> None:
    """Put ids (`transaction` or `user`) first among those of a scope: a profile's name, `@default`, `@sandbox`."""
    if _SCOPE.fullmatch(scope):
        path = cache / "complete" / scope / kind
        _write(path, [one for one in ids if one is not None], _read(path))


def remember_profiles(cache: Path, names: Iterable[str]) -> None:
    """Keep the names of the profiles that there are, and no others."""
    _write(cache / "complete" / "profile", sorted(names), [], known=_read(cache / "complete" / "profile"))


def _write(path: Path, first: list[str], then: list[str], *, known: list[str] | None = None) -> None:
    names = [name for name in dict.fromkeys((*first, *then)) if _NAME.fullmatch(name)][:MAX_NAMES]
    if names == (then if known is None else known):
        return
    with contextlib.suppress(OSError, EscrowctlError):
        make_private_folder(path.parent)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, 0o600)
            file.writelines(f"{name}\n" for name in names)
        draft.replace(path)


def _read(path: Path) -> list[str]:
    try:
        # Whatever else may stand in its place is not waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(handle, encoding="ascii", errors="replace") as file:
            return file.read(_MAX_BYTES).splitlines()
    except (OSError, ValueError):
        return []
