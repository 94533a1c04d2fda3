"""Open a journal, and refuse it if a setting requires a different journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.witness import Witness
from escrowctl.runtime import Clock, DrawWait

if TYPE_CHECKING:
    from escrowctl.journal.postgres.place import PostgresPlace
    from escrowctl.journal.storage import JournalPlace
    from escrowctl.journal_url import JournalUrl


def find_place(folder: Path) -> JournalPlace:
    """Return the place of the journal in a folder."""
    return SqlitePlace(folder)


def find_shared_place(
    url: JournalUrl, folder: Path, operator: str, attempt_seconds: float, draw_wait: DrawWait
) -> PostgresPlace:
    """Return the place of a journal in a database. `folder` has what stays on this machine.

    `operator` uses the journal, and an attempt of a write takes at most `attempt_seconds`. `draw_wait` is called while
    a command waits for the database.

    Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the driver is not installed.
    """
    try:
        from escrowctl.journal.postgres.place import PostgresPlace  # noqa: PLC0415 - its driver takes 300 ms, and is optional
    except ImportError as error:
        message = f"the journal {url} cannot be used: psycopg, the driver for PostgreSQL, is not installed."
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, reason=Reason.NO_DRIVER) from error
    return PostgresPlace(url, folder, operator, attempt_seconds, draw_wait)


def open_journal(
    place: JournalPlace, *, now: Clock, read_only: bool = False, pins: Collection[tuple[str, str]] = ()
) -> Journal:
    """Return the journal at a place. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.

    `read_only`: nothing is created, and the files may be read-only. Each of the `pins` is the id of a required
    journal and the name of the setting with this id. If the place has a different journal or none, that is an
    error, and no journal is created.
    """
    if pins:
        _require_pinned_journal(place, pins)
    witness = Witness(place)
    if not read_only:
        witness.refuse_lost_journal()
    journal = Journal(*place.open(now=now, reading=read_only), place)
    try:
        if not read_only:
            witness.create(journal.storage)
    except BaseException:
        journal.close()
        raise
    return journal


def _require_pinned_journal(place: JournalPlace, pins: Iterable[tuple[str, str]]) -> None:
    journal_id = place.find_id()
    actual = f"{place.location} does not exist" if journal_id is None else f"this journal is {journal_id}"
    for required_id, setting in pins:
        if not required_id:
            message = f"{setting} is empty: it should be the id that journal init printed."
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message)
        if required_id != journal_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"{actual}, but {setting} requires journal {required_id}, which has the earlier writes.",
                reason=Reason.PINNED_MISSING if journal_id is None else Reason.PINNED_ELSEWHERE,
            )
