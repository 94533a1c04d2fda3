"""Names that the shells offer at TAB: recent ids by profile, and the profiles.

    <cache>/complete/profile                   the profiles of config.toml
    <cache>/complete/<profile>/transaction     ids seen under `-p <profile>`, newest first
    <cache>/complete/@default/..., @sandbox/...   without -p, with --sandbox

The shells read these files themselves and start nothing. The names may come from a service, so only
letters, digits, `_` and `-` are stored, and no `-` in front, where it would make an option of the
name. The scripts check again: `compgen -W` would run `$(...)` found in its data. Nothing here may
fail a command or make it wait.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from escrowctl.config.folders import make_private_folder
from escrowctl.errors import EscrowctlError
from escrowctl.files import open_regular, replace_file

MAX_NAMES = 500
DEFAULT = "@default"
SANDBOX = "@sandbox"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}", re.ASCII)
_SCOPE = re.compile(r"[A-Za-z0-9_-]{1,64}|@default|@sandbox", re.ASCII)
_MAX_BYTES = MAX_NAMES * 129


def remember_ids(cache: Path, scope: str, kind: str, ids: Iterable[str | None]) -> None:
    """Put ids (`transaction` or `user`) first in a scope: a profile's name, `@default` or `@sandbox`."""
    if _SCOPE.fullmatch(scope):
        path = cache / "complete" / scope / kind
        _write(path, [one for one in ids if one is not None], _read(path))


def remember_profiles(cache: Path, names: Iterable[str]) -> None:
    """Store the names of the profiles, and no others."""
    _write(cache / "complete" / "profile", sorted(names), [], known=_read(cache / "complete" / "profile"))


def _write(path: Path, first: list[str], then: list[str], *, known: list[str] | None = None) -> None:
    names = [name for name in dict.fromkeys((*first, *then)) if _NAME.fullmatch(name)][:MAX_NAMES]
    if names == (then if known is None else known):
        return
    with contextlib.suppress(OSError, EscrowctlError):
        make_private_folder(path.parent)
        replace_file(path, "".join(f"{name}\n" for name in names).encode("ascii"))


def _read(path: Path) -> list[str]:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES).splitlines()
    except (OSError, ValueError):
        return []
