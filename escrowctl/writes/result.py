"""What a write came to."""

from typing import NamedTuple

from escrowctl.client.http import Answer
from escrowctl.contract.record import Located, Record
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.model import Entry


class WriteResult(NamedTuple):
    """What became of a write: its entry and the reply.

    `entry` is None where a release was skipped, because the escrow is released already. `record` is the
    reply, where it is JSON. `code` is a refusal's. `replayed`: nothing was sent now, an earlier
    command's result counts. `answer`: the service sent a status now.

    `before` and `after` are the record as read before and after (None: not read); `why_unread` says why it
    could not be read after. `verified`: it was read back as done (True), as another status (False), or it
    is not known (None).

    `failure`: it is done, but differs from what was sent; raised once the record is shown. `earlier` created
    something under the same id before.
    """

    entry: Entry | None
    record: Record | None = None
    code: ErrorCode | None = None
    replayed: bool = False
    answer: Answer | None = None
    before: Located | None = None
    after: Record | None = None
    why_unread: str | None = None
    verified: bool | None = None
    failure: EscrowctlError | None = None
    earlier: Entry | None = None

    @property
    def sent(self) -> Entry:
        """The entry; only where something was sent, now or before."""
        assert self.entry is not None, "it was sent"
        return self.entry

    @property
    def status_before(self) -> str | None:
        """The status that was read before."""
        return self.before.status if self.before else None

    @property
    def status_after(self) -> str | None:
        """The status that was read after."""
        return self.after.located.status if self.after else None
