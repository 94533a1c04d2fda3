"""What commands get back from the client, as plain values; light to import."""

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from escrowctl.contract.number import JsonValue

if TYPE_CHECKING:
    from escrowctl.contract.record import Located
    from escrowctl.errors import EscrowctlError
    from escrowctl.journal.model import Entry


@dataclass(frozen=True, slots=True)
class Record:
    """What a service says of one thing: the whole document, the record in it, and what was found there."""

    document: JsonValue
    value: JsonValue
    located: "Located"


@dataclass(frozen=True, slots=True)
class Records:
    """A collection as a service lists it: the whole document, and the items found in it."""

    document: JsonValue
    items: list[Record]


@dataclass(frozen=True, slots=True)
class Made:
    """A write that is done, and what the service said of it (None: nothing).

    `replayed`: an earlier command did it, nothing was sent now. `failure`: it is done, but not as it
    was sent; raised once the record is shown. `earlier` created something under the same id before.
    """

    entry: "Entry"
    record: Record | None
    replayed: bool
    failure: "EscrowctlError | None" = None
    earlier: "Entry | None" = None


@dataclass(frozen=True, slots=True)
class Updated:
    """An update that is done, and what was read before and after it (None: nothing).

    `unread` says why the record could not be read back.
    """

    made: Made
    before: "Located | None" = None
    after: Record | None = None
    unread: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """A release that was accepted.

    `verified`: read back as released (True) or as another status (False); None where that cannot be
    told: the profile names no status for released, or the record could not be read. `entry` is None
    where it had been released before: nothing was sent now.
    """

    id: str
    http_status: int | None
    reply: JsonValue
    status_before: str | None
    status_after: str | None
    verified: bool | None
    money: str
    entry: "Entry | None"
    replayed: bool = False


def describe(located: "Located | None") -> str:
    """Return a record in a few words: status, amount, currency."""
    if located is None:
        return "unreadable"
    return " ".join(part for part in (located.status, describe_money(located)) if part) or "nothing known"


def describe_money(located: "Located | None") -> str:
    """Return `100 USD`, as far as it is known."""
    if located is None or located.amount is None:
        return ""
    return f"{located.amount} {located.currency or ''}".rstrip()


def set_pending(status: str) -> str:
    """Return the command that adds a status to status.pending, without the program's name."""
    return f"config set status.pending {shlex.quote(status)}"
