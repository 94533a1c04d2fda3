"""The kinds of event that a webhook endpoint can be told of.

interface.md section 6: kinds of event, and which operation emits which, are not shown. These names
are the sandbox's own choice, in the manner of Standard Webhooks (a noun, a point, a past participle).
"""

from enum import StrEnum


class EventKind(StrEnum):
    """One kind for each thing that can happen to a transaction."""

    TRANSACTION_CREATED = "transaction.created"
    TRANSACTION_RELEASED = "transaction.released"
