"""Opens the journal of a run, and checks that live writes may use it."""

from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.config.folders import Folders
from escrowctl.config.service import Service
from escrowctl.config.settings import ServiceResolver
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from escrowctl.journal.journal import Journal
    from escrowctl.journal.storage import JournalPlace


class Journals:
    """Opens the journal of this run: the sandbox's if `sandbox`, else this user's journal on this machine."""

    def __init__(self, runtime: Runtime, folders: Folders, resolver: ServiceResolver, *, sandbox: bool) -> None:
        self._runtime = runtime
        self._folders = folders
        self._resolver = resolver
        self._sandbox = sandbox

    @property
    def folder(self) -> Path:
        """The folder of the journal. Raises `STATE_UNUSABLE` if another user can change ESCROWCTL_HOME."""
        if self._sandbox:
            return self.sandbox_folder
        self._folders.require_safe_home()
        return self._folders.state

    @property
    def place(self) -> "JournalPlace":
        """Where the journal is. Raises `STATE_UNUSABLE` if another user can change ESCROWCTL_HOME."""
        from escrowctl.journal.opening import find_place

        return find_place(self.folder)

    @property
    def sandbox_folder(self) -> Path:
        """The folder with the sandbox's store and the sandbox's journal."""
        return self._folders.state / "sandbox"

    def open(self, *, reading: bool, check_required_ids: bool = True) -> "Journal":
        """Open the journal; the caller closes it. Raises EscrowctlError `JOURNAL_UNUSABLE`.

        `reading`: nothing is created, and the disk may be read-only. `check_required_ids`: the journal must have the id
        that settings require.
        """
        from escrowctl.journal.opening import open_journal

        pins = self._required_ids if check_required_ids else ()
        return open_journal(self.place, now=self._runtime.now, read_only=reading, pins=pins)

    def guard_live_writes(self, service: Service, console: Console) -> None:
        """Check the journal before live writes. Warn if other machines may not see the journal's locks.

        Raises EscrowctlError `JOURNAL_UNUSABLE` if a CI job's journal has no create or release at the service.
        """
        if not service.live:
            return
        self.require_history(service)
        if (reason := self.place.warn_of_locks()) is not None:
            console.warn("unshared_locks", f"the journal's folder {reason}")

    def require_history(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` if a CI job's journal has no create or release at this live service.

        Nothing is checked if settings require a journal by its id.
        """
        if not (service.live and self._runtime.environ.get("CI")) or self._required_ids:
            return
        from escrowctl.writes.requests import require_history

        with closing(self.open(reading=True)) as journal:
            require_history(service, journal)

    @cached_property
    def _required_ids(self) -> tuple[tuple[str, str], ...]:
        """The journal ids that settings require, each with the setting's source. The sandbox requires none."""
        return () if self._sandbox else self._resolver.find_required_journal_ids()
