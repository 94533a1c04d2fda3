"""What a machine keeps of its writes in shared journals: with which write its last process began, for each account.

A journal that is used instead, because a setting was lost or changed, must have these writes too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.files import read_regular, sync_folder, write_durably
from escrowctl.journal.account import Account
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.model import Entry
from escrowctl.journal.storage import unusable

_MAX_BYTES = 10_000


class SharedWrite(NamedTuple):
    """A write in the shared journal at `location`. `origin` names it where that journal was imported.

    `described` says what it was, for an operator who has to ask the service about it. Another write may have got the
    same `origin` in a restored database, but not the same `idempotency_key`.
    """

    location: str
    origin: str
    services: list[str]
    account: str | None
    key_fingerprint: str | None
    described: str = ""
    idempotency_key: str = ""


def keep_file(path: Path, text: str) -> None:
    """Create or replace a private file durably; of several processes, the last one wins. Raises `JOURNAL_UNUSABLE`."""
    draft = path.with_suffix(f".{os.urandom(8).hex()}")  # processes in two containers can have the same number
    try:
        write_durably(draft, text.encode())
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise unusable(str(path), str(error)) from error


def keep_writes(folder: Path, entries: Iterable[Entry], journal_id: str, location: str, kept: set[object]) -> None:
    """Keep a write for each service and account in `folder`. Raises `JOURNAL_UNUSABLE`.

    `kept` is for what this process has kept. Entries that were imported there prove nothing and are left out.
    """
    for one in entries:
        intent, account = one.intent, one.intent.account.as_stored
        names = (journal_id, *intent.service_names, account.name)
        if names not in kept and one.origin is None:
            origin, services = f"{journal_id} {one.name}", [*intent.service_names]
            money = f"{intent.amount} {intent.currency}" if intent.money else None
            described = filter(None, (one.name, intent.verb, money, intent.resource_id, intent.reference, one.sent_at))
            named = (account.name, account.fingerprint, ", ".join(described), intent.idempotency_key)
            write = SharedWrite(location, origin, services, *named)
            digest = hashlib.sha256(repr(names).encode()).hexdigest()[:16]
            keep_file(folder / f"{digest}.write", json.dumps(write._asdict()))
            kept.add(names)


def find_writes(folder: Path, services: Iterable[str], account: Account) -> Iterator[tuple[SharedWrite, Path]]:
    """Yield each kept write to a service with one of these names, and maybe for this account, with its file.

    Raises `JOURNAL_UNUSABLE`.
    """
    path = folder
    try:
        for path in sorted(folder.iterdir()) if folder.exists() else ():
            if path.suffix == ".write":
                write = SharedWrite(**json.loads(read_regular(path, limit=_MAX_BYTES)[0]))
                is_other = account.is_other(Account(write.account, write.key_fingerprint))
                if not (is_other or set(write.services).isdisjoint(services)):
                    yield write, path
    except (OSError, AttributeError, *DECODING_ERRORS) as error:
        message, facts = f"{path}, a note of a write to a shared journal, is damaged: {error}.", {"file": str(path)}
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message, facts=facts, reason=Reason.MOVED) from error
