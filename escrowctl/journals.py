"""Opens the journal of a run, and checks that live writes may use it."""

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
    """Opens the journal of the user on this machine, or if `sandbox` the journal of the sandbox."""

    def __init__(self, runtime: Runtime, folders: Folders, resolver: Resolver, *, sandbox: bool) -> None:
        self._runtime = runtime
        self._folders = folders
        self._resolver = resolver
        self._sandbox = sandbox

    @property
    def folder(self) -> Path:
        """The folder of the journal. Raises EscrowctlError `STATE_UNUSABLE` if others can change ESCROWCTL_HOME."""
        if self._sandbox:
            return self.sandbox_folder
        self._folders.require_safe_home()
        return self._folders.state

    @property
    def sandbox_folder(self) -> Path:
        """The folder with the sandbox's store and the sandbox's journal."""
        return self._folders.state / "sandbox"

    def open(self, *, reading: bool, check_pins: bool = True) -> "Journal":
        """Open the journal; the caller closes it. Raises EscrowctlError `JOURNAL_UNUSABLE`.

        `reading`: nothing is created, and the disk may be read-only. Without `check_pins`, the journal is opened
        even if settings require one with another id.
        """
        from escrowctl.journal.opening import open_journal

        pins = self._pins if check_pins else ()
        return open_journal(self.folder, now=self._runtime.now, read_only=reading, pins=pins)

    def guard_live_writes(self, service: Service, console: Console) -> None:
        """Check the journal before writes to a live service. Warn if other machines may not see its locks.

        Raises EscrowctlError `JOURNAL_UNUSABLE` in a CI job without earlier writes to the service.
        """
        if not service.live:
            return
        self.require_history(service)
        from escrowctl.journal.sqlite.mounts import find_unshared_locks

        if (reason := find_unshared_locks(self._folders.state)) is not None:
            console.warn("unshared_locks", f"the journal's folder {reason}")

    def require_history(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` in a CI job without earlier writes to this live service.

        If settings require a journal by its id, there is no such check.
        """
        if not (service.live and self._runtime.environ.get("CI")) or self._pins:
            return
        from escrowctl.writes.intents import require_history

        with closing(self.open(reading=True)) as journal:
            require_history(service, journal)

    @cached_property
    def _pins(self) -> tuple[tuple[str, str], ...]:
        """The journal ids that settings require, each with its source. None are required for the sandbox."""
        return () if self._sandbox else self._resolver.find_required_journals()
