"""Which journal a run opens, and when a live write may use it."""

from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.config.folders import Folders
from escrowctl.config.service import Service
from escrowctl.config.settings import Resolver
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from escrowctl.journal.journal import Journal


class Journals:
    """Opens the journal of this machine, or with `sandbox` the journal of the sandbox."""

    def __init__(self, runtime: Runtime, folders: Folders, resolver: Resolver, *, sandbox: bool) -> None:
        self._runtime = runtime
        self._folders = folders
        self._resolver = resolver
        self._sandbox = sandbox

    @property
    def folder(self) -> Path:
        """The folder of the journal. Raises EscrowctlError `STATE_UNUSABLE`."""
        if self._sandbox:
            return self.sandbox_folder
        self._folders.require_safe_home()
        return self._folders.state

    @property
    def sandbox_folder(self) -> Path:
        """The folder of the sandbox's store and journal."""
        return self._folders.state / "sandbox"

    def open(self, *, reading: bool, required: bool = True) -> "Journal":
        """Open the journal; the caller closes it.

        `reading`: nothing is created, and the disk may be read-only. `required=False`: even if settings require
        another journal. Raises EscrowctlError `JOURNAL_UNUSABLE`.
        """
        from escrowctl.journal.opening import open_journal

        pins = self._pins if required else ()
        return open_journal(self.folder, now=self._runtime.now, reading=reading, pins=pins)

    def guard_live_writes(self, service: Service, console: Console) -> None:
        """Check before live writes: a CI job without history is refused, locks that are not shared cause a warning.

        Raises EscrowctlError `JOURNAL_UNUSABLE`.
        """
        if not service.live:
            return
        self.require_history(service)
        from escrowctl.journal.sqlite.mounts import find_unshared_locks

        if (why := find_unshared_locks(self._folders.state)) is not None:
            console.warn("unshared_locks", f"the journal's folder {why}")

    def require_history(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` in a CI job whose journal has no write to this live service and is not pinned."""
        if not (service.live and self._runtime.environ.get("CI")) or self._pins:
            return
        from escrowctl.writes.intents import require_history

        with closing(self.open(reading=True)) as journal:
            require_history(service, journal)

    @cached_property
    def _pins(self) -> tuple[tuple[str, str], ...]:
        """The journal ids that settings require; none for the sandbox."""
        return () if self._sandbox else self._resolver.find_pins()
