"""Opens the journal of a run, and checks that live writes may use it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.config.folders import Folders
from escrowctl.config.service import Service
from escrowctl.config.settings import ServiceResolver
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from escrowctl.journal.journal import Journal
    from escrowctl.journal.postgres.place import PostgresPlace
    from escrowctl.journal.storage import JournalPlace


class Journals:
    """Opens the journal of this run: the sandbox's if `sandbox`, else a shared one or this user's on this machine."""

    def __init__(
        self, runtime: Runtime, folders: Folders, resolver: ServiceResolver, console: Console, *, sandbox: bool
    ) -> None:
        self._runtime = runtime
        self._folders = folders
        self._resolver = resolver
        self._console = console
        self._sandbox = sandbox

    @property
    def folder(self) -> Path:
        """The folder of what stays on this machine, such as its own journal.

        Raises `STATE_UNUSABLE` if another user can change ESCROWCTL_HOME.
        """
        if self._sandbox:
            return self.sandbox_folder
        self._folders.require_safe_home()
        return self._folders.state

    @property
    def place(self) -> "JournalPlace":
        """Where the journal is. Raises `STATE_UNUSABLE` if another user can change ESCROWCTL_HOME."""
        from escrowctl.journal.opening import find_place

        return self.shared_place or find_place(self.folder)

    @cached_property
    def shared_place(self) -> "PostgresPlace | None":
        """The place of the shared journal that settings name; None if they name none, and for the sandbox.

        Raises the errors of `place`.
        """
        if self._sandbox or (found := self._resolver.find_shared_journal()) is None:
            return None
        from escrowctl.journal.opening import find_shared_place

        url, write_timeout = found
        return find_shared_place(url, self.folder, self._runtime.operator, write_timeout, self._console.draw_wait)

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

    def guard_live_writes(self, service: Service) -> None:
        """Check the journal before live writes. Warn if other machines may not see the journal's locks.

        Raises EscrowctlError `JOURNAL_UNUSABLE` if a CI job's journal has no create or release at the service, if a
        shared journal lacks writes of this machine's own, or if settings do not name the shared one that it used.
        """
        if not service.live:
            return
        self.require_history(service)
        self.require_imported(service)
        self.require_shared(service)
        if (reason := self.place.warn_of_locks()) is not None:
            self._console.warn("unshared_locks", f"the journal's folder {reason}")

    def require_history(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` if a CI job's journal has no create or release at this live service.

        A job that starts with an empty disk has lost the journal, and could repeat payments. Nothing is checked if
        settings require a journal by its id.
        """
        if not self._runtime.environ.get("CI") or self._required_ids:
            return
        from escrowctl.journal.model import POSSIBLE_STATES, Selection

        money_writes = Selection(states=POSSIBLE_STATES, operations=(CREATE_TRANSACTION.name, RELEASE_TRANSACTION.name))
        with closing(self.open(reading=True)) as journal:
            # To record one of several lost writes must not open the journal for jobs that would repeat the others.
            earlier = (one for one in journal.select_all(money_writes) if not one.is_recorded_later)
            if any(one.intent.goes_to_service(service.journal_names) for one in earlier):
                return
        raise not_sent(
            ErrorCode.JOURNAL_UNUSABLE,
            f"the variable CI is set, and the journal in {self.place.location} has no write to {service.origin}: "
            "escrowctl cannot know which payments were sent before.",
            reason=Reason.NO_HISTORY,
        )

    @contextmanager
    def open_own(self, *, reading: bool) -> "Iterator[Journal]":
        """Open this machine's own journal, although settings may name a shared one."""
        from escrowctl.journal.opening import find_place, open_journal

        try:
            with closing(open_journal(find_place(self.folder), now=self._runtime.now, read_only=reading)) as own:
                yield own
        except EscrowctlError as error:
            if error.code is ErrorCode.JOURNAL_UNUSABLE:
                error.reason = Reason.OWN_UNUSABLE
            raise

    def require_imported(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` if this machine's own journal has writes to a service that a shared one may lack.

        It has to be closed, so that nothing is added, and its newest write to the service has to be in the shared one.
        """
        from escrowctl.journal.model import Entry, Selection

        if self.shared_place is None:
            return
        shared_id = self.shared_place.find_id()
        with self.open_own(reading=True) as own:
            closed, own_id, location = own.require_complete(), own.storage.journal_id, own.place.location
            if closed is not None and closed.successor == shared_id:
                return
            # The newest that was written here, and the newest imported one: each may be in the shared one by itself.
            newest = dict[bool, Entry]()
            for one in own.select_all(Selection()):
                if one.intent.goes_to_service(service.journal_names):
                    newest.setdefault(one.origin is None, one)
        missing = [
            one.name
            for one in newest.values()
            if closed is None or not self._has(f"{own_id} {one.name}", *filter(None, [one.origin]))
        ]
        if not missing:
            return
        known = f"the journal {location} has writes to {service.origin} that the shared journal may lack"
        raise not_sent(
            ErrorCode.JOURNAL_UNUSABLE,
            f"{known}, such as {missing[0]}{f': {closed}' if closed is not None else ''}.",
            hint="to add it: run journal export without the journal's setting, and import the file" if closed else (),
            facts={"where": closed.where if closed is not None else None},
            reason=Reason.NOT_IMPORTED if closed is None else Reason.MOVED,
        )

    def require_shared(self, service: Service) -> None:
        """Raise `JOURNAL_UNUSABLE` if this machine's writes for the account are in a shared journal, but not in this.

        This one has them if that journal, or one that was made from it, was imported.
        """
        from escrowctl.journal.shared_writes import find_writes
        from escrowctl.writes.requests import account_of

        for write, path in find_writes(self.folder / "shared", service.journal_names, account_of(service)):
            if not self._has(write.origin, key=write.idempotency_key):
                began = f"this machine began a write to {service.origin} ({write.described or write.origin})"
                message = f"{began} in the journal {write.location}, and the journal {self.place.location} lacks it."
                facts = {"where": write.location, "file": str(path)}
                raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, facts=facts, reason=Reason.MOVED)

    def _has(self, *origins: str, key: str = "") -> bool:
        """Whether a write with one of these origins, and with this key, was imported or first made in this journal."""
        from escrowctl.journal.model import Selection

        if any(origin.startswith(f"{self.place.find_id()} ") for origin in origins):
            return True
        with closing(self.open(reading=True)) as journal:
            found = [one for origin in origins for one in journal.storage.select(Selection(None, origin=origin))]
        return any(key in ("", one.intent.idempotency_key) for one in found)

    @cached_property
    def _required_ids(self) -> tuple[tuple[str, str], ...]:
        """The journal ids that settings require, each with the setting's source. The sandbox requires none."""
        return () if self._sandbox else self._resolver.find_required_journal_ids()
