"""Names that the shells offer at TAB: recent ids of each profile, profiles, journal entries and batches.

    <cache>/complete/profile                   the profiles of config.toml
    <cache>/complete/default                   the default profile: its ids are offered on a line without -p
    <cache>/complete/<profile>/transaction     ids seen in that profile, newest first; "ID released" if the service
                                               reports it as released, so that `tx release` does not offer it
    <cache>/complete/<profile>/event           events received for that profile, newest first
    <cache>/complete/@default/...              the same files for a service without a profile
    <cache>/complete/@sandbox/...              the same files for --sandbox
    <cache>/complete/@default/entry, batch     names in the journal, which all profiles share

The shells read these files themselves and start no program. A name may come from a service, so it
is stored only if all its characters are letters, digits, `_` or `-`. It must not start with `-`, like an option.
The scripts check names again: `compgen -W` would run a `$(...)`. The cache never delays a command or makes it fail.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from escrowctl.config.service import Service
from escrowctl.errors import EscrowctlError
from escrowctl.files import make_private_folder, open_regular, replace_quickly

_MAX_NAMES = 500
_DEFAULT_SCOPE = "@default"
_SANDBOX_SCOPE = "@sandbox"
JOURNAL_KINDS = frozenset({"entry", "batch"})
"""Kinds of names that come from the journal. All profiles share them."""
_RELEASED = " released"
_LINE_PATTERN = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,127}}({_RELEASED})?", re.ASCII)
_MAX_FILE_BYTES = _MAX_NAMES * 138


class CompletionCache:
    """Adds names to the cache, for the shells to offer. Ignores a cache that cannot be written.

    `find_folder` returns the cache folder, or raises EscrowctlError. `sandbox`: whether this run uses the sandbox.
    """

    def __init__(self, find_folder: Callable[[], Path], *, sandbox: bool) -> None:
        self._find_folder = find_folder
        self._sandbox = sandbox

    def add_ids(self, kind: str, found: Mapping[str | None, object], service: Service) -> None:
        """Add ids of a kind (`transaction`, `user`) as the newest. `found` maps id to status (None: unknown)."""
        released = service.released if kind == "transaction" else ()
        lines = [one and one + _RELEASED * (str(status).casefold() in released) for one, status in found.items()]
        self._add(service.profile, kind, lines)

    def add_events(self, names: Iterable[str], profile: str | None) -> None:
        """Add names of received events as the newest. `profile` is the profile of the sending service, or None."""
        self._add(profile, "event", names)

    def add_journal_names(self, kind: str, names: Iterable[str | None]) -> None:
        """Add names of journal entries (`kind` is `entry`) or of batches (`batch`) as the newest."""
        self._add(None, kind, names)

    def set_profiles(self, names: Iterable[str], default: str | None) -> None:
        """Replace the stored names of the profiles, and the name of the default profile."""
        self._update_file("profile", lambda _known: sorted(names))
        self._update_file("default", lambda _known: [] if default is None else [default])

    def _add(self, profile: str | None, kind: str, names: Iterable[str | None]) -> None:
        scope = _SANDBOX_SCOPE if self._sandbox else profile or _DEFAULT_SCOPE
        self._update_file(f"{scope}/{kind}", lambda known: [*filter(None, names), *known])

    def _update_file(self, name: str, choose: Callable[[list[str]], list[str]]) -> None:
        with contextlib.suppress(OSError, EscrowctlError):
            path = self._find_folder() / "complete" / name
            known: list[str] = []
            with (
                contextlib.suppress(OSError, ValueError),
                os.fdopen(open_regular(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file,
            ):
                known = file.read(_MAX_FILE_BYTES).splitlines()
            newest: dict[str, str] = {}
            for line in filter(_LINE_PATTERN.fullmatch, choose(known)):
                newest.setdefault(line.removesuffix(_RELEASED), line)
            lines = list(newest.values())[:_MAX_NAMES]
            if lines != known:
                make_private_folder(path.parent)
                replace_quickly(path, "".join(f"{line}\n" for line in lines).encode("ascii"))
