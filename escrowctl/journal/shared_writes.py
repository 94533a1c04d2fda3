"""What a machine keeps of its writes in shared journals: the first one for each journal, service and account.

A journal that is used instead, because a setting was lost or changed, must have these writes too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.files import create_durably, read_regular
from escrowctl.journal.account import Account
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.model import Entry
from escrowctl.journal.storage import unusable

_MAX_BYTES = 10_000


class SharedWrite(NamedTuple):
    """A write in the shared journal at `location`. `origin` names it where that journal was imported."""

    location: str
    origin: str
    services: list[str]
    account: str | None
    key_fingerprint: str | None


def keep_writes(folder: Path, entries: Iterable[Entry], journal_id: str, location: str) -> None:
    """Keep the first write for each service and account in `folder`, durably. Raises `JOURNAL_UNUSABLE`."""
    for names, one in {(*one.intent.service_names, one.intent.account.name): one for one in entries}.items():
        path = folder / f"{hashlib.sha256(repr((journal_id, names)).encode()).hexdigest()[:16]}.write"
        account, origin = one.intent.account.as_stored, one.origin or f"{journal_id} {one.name}"
        write = SharedWrite(location, origin, [*one.intent.service_names], account.name, account.fingerprint)
        try:
            create_durably(path, json.dumps(write._asdict()).encode())
        except OSError as error:
            raise unusable(str(path), str(error)) from error


def find_writes(folder: Path, services: Iterable[str], account: Account) -> Iterator[tuple[SharedWrite, Path]]:
    """Yield each kept write to a service with one of these names, and maybe for this account, with its file.

    Raises `JOURNAL_UNUSABLE`.
    """
    for path in sorted(folder.glob("*.write")):
        try:
            write = SharedWrite(**json.loads(read_regular(path, limit=_MAX_BYTES)[0]))
            is_other = account.is_other(Account(write.account, write.key_fingerprint))
            if not (is_other or set(write.services).isdisjoint(services)):
                yield write, path
        except (OSError, *DECODING_ERRORS) as error:
            message = f"{path}, which names a write of this machine in a shared journal, cannot be read: {error}."
            facts = {"file": str(path)}
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, facts=facts, reason=Reason.MOVED) from error
