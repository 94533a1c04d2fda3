"""Why a write or the journal is refused, in more detail than error codes. `commands.advice` has the hints."""


class Reason:
    """The values of an EscrowctlError's `reason`, plain texts. The error's facts say which entry or file.

    Not an enum: every write imports it, and creating so large an enum takes half a millisecond.
    """

    # The journal itself
    CLOSED = "closed"
    DAMAGED = "damaged"
    DISK_FAILED = "disk_failed"
    DISK_FULL = "disk_full"
    EXPORT_OF_ANOTHER = "export_of_another"
    FILE_MISSING = "file_missing"
    FILE_UNUSABLE = "file_unusable"
    LOCKED = "locked"
    OLDER_FORMAT = "older_format"
    PINNED_ELSEWHERE = "pinned_elsewhere"
    PINNED_MISSING = "pinned_missing"
    # Earlier writes, and caps
    BUSY = "busy"
    CAPPED = "capped"
    EARLIER_UNKNOWN = "earlier_unknown"
    ID_OF_ANOTHER_ACCOUNT = "id_of_another_account"
    ID_SPELLED_DIFFERENTLY = "id_written_otherwise"
    KEY_OF_ANOTHER_ACCOUNT = "key_of_another_account"
    KEY_OF_ANOTHER_REQUEST = "key_of_another_request"
    KEY_OF_BATCH = "key_of_batch"
    KEY_OF_REFERENCE = "key_of_reference"
    NOT_VERIFIED = "not_verified"
    REFERENCE_REUSED = "reference_reused"
    TAKEN_OVER = "taken_over"
    # The write that was refused, or its result
    CREATED_DIFFERENTLY = "created_otherwise"
    FIELD_NOT_FOUND = "field_not_found"
    ID_MISREAD = "id_misread"
    ID_NOT_RECOGNISED = "id_not_recognised"
    IN_PROGRESS = "in_progress"
    MAY_BE_IN_PROGRESS = "may_be_in_progress"
    MONEY_CHANGED = "money_changed"
    NEEDS_REASON = "needs_reason"
    NO_HISTORY = "no_history"
    NO_STATUS = "no_status"
    NOT_CONFIRMED = "not_confirmed"
    OTHER_STATUS = "other_status"
    REFUSED = "refused"
    REFUSED_EARLIER = "refused_earlier"
    SECRET_NOT_STORED = "secret_not_stored"  # noqa: S105 - a name
    SEEMS_DONE = "seems_done"
    UNKNOWN = "unknown"
    UNREADABLE = "unreadable"
    UNREADABLE_EVIDENCE = "unreadable_evidence"
    WAIT_OVER = "wait_over"
    WEB_PAGE = "web_page"
