"""Names that the shells offer at TAB: recent ids by profile, the profiles, entries and batches of the journal.

    <cache>/complete/profile                   the profiles of config.toml
    <cache>/complete/default                   the default one: a line without -p uses its ids
    <cache>/complete/<profile>/transaction     ids seen in that profile, newest first
    <cache>/complete/<profile>/unreleased      those not reported as released
    <cache>/complete/<profile>/event           events received for that profile, newest first
    <cache>/complete/@default/..., @sandbox/...   without a profile, with --sandbox
    <cache>/complete/@default/entry, batch     names in the journal, which is one for all profiles

The shells read these files themselves and start no program. The names may come from a service. So only
letters, digits, `_` and `-` are stored, and no `-` in front: it would make the name an option. The
scripts check again: `compgen -W` would run `$(...)` found in its data. A failure here must not fail a
command or make it wait.
"""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from escrowctl.config.service import Service
from escrowctl.errors import EscrowctlError
from escrowctl.files import make_private_folder, open_regular, replace_quickly

MAX_NAMES = 500
DEFAULT = "@default"
SANDBOX = "@sandbox"
IN_JOURNAL = frozenset({"entry", "batch"})
"""Kinds of names in the journal; they are the same for each profile."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}", re.ASCII)
_SCOPE = re.compile(r"[A-Za-z0-9_-]{1,64}|@default|@sandbox", re.ASCII)
_MAX_BYTES = MAX_NAMES * 129


class Names:
    """Adds the names of one run to the cache. It never fails a command.

    `find_folder` returns the cache folder, or raises EscrowctlError. `sandbox`: the run uses the sandbox.
    """

    def __init__(self, find_folder: Callable[[], Path], *, sandbox: bool) -> None:
        self._find_folder = find_folder
        self._sandbox = sandbox

    def add_ids(self, kind: str, found: Mapping[str | None, object], service: Service) -> None:
        """Put ids of a kind (`transaction`, `user`) first. `found` maps id to status, or to None if it is not known."""
        scope = self._scope(service.profile)
        self._add(scope, kind, found)
        if kind == "transaction":
            released = {one for one, status in found.items() if str(status).casefold() in service.released}
            self._add(scope, "unreleased", found, without=released)

    def add_events(self, names: Iterable[str], profile: str | None) -> None:
        """Put names of received events first. `profile`: the profile of their service, or None."""
        self._add(self._scope(profile), "event", names)

    def add_in_journal(self, kind: str, names: Iterable[str | None]) -> None:
        """Put names of the journal (`entry`, `batch`) first."""
        self._add(SANDBOX if self._sandbox else DEFAULT, kind, names)

    def set_profiles(self, names: Iterable[str], default: str | None) -> None:
        """Replace the names of the profiles, and the name of the default one."""
        self._write("profile", lambda _known: sorted(names))
        self._write("default", lambda _known: [] if default is None else [default])

    def _scope(self, profile: str | None) -> str:
        return SANDBOX if self._sandbox else profile or DEFAULT

    def _add(self, scope: str, kind: str, names: Iterable[str | None], *, without: Collection[str | None] = ()) -> None:
        if _SCOPE.fullmatch(scope):
            self._write(
                f"{scope}/{kind}",
                lambda known: [name for name in (*names, *known) if name is not None and name not in without],
            )

    def _write(self, name: str, choose: Callable[[list[str]], list[str]]) -> None:
        with contextlib.suppress(OSError, EscrowctlError):
            path = self._find_folder() / "complete" / name
            known = _read(path)
            names = [one for one in dict.fromkeys(choose(known)) if _NAME.fullmatch(one)][:MAX_NAMES]
            if names != known:
                make_private_folder(path.parent)
                replace_quickly(path, "".join(f"{one}\n" for one in names).encode("ascii"))


def _read(path: Path) -> list[str]:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES).splitlines()
    except (OSError, ValueError):
        return []
