"""The exit codes: every ending of the program is one of these."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script may branch on. README and `help exit-codes` are generated from this list."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> "ExitCode":
        """Bind the sentence that documents a code to the code itself."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "done, an empty list too"
    DEFECT = 1, "internal error in escrowctl"
    USAGE = 2, "usage, bad value, bad config; nothing was sent"
    DECLINED = 3, "not confirmed (declined, or no terminal to ask), or an --expect-* check failed"
    UNAUTHENTICATED = 4, "not authenticated: nothing configured, no usable key, 401"
    FORBIDDEN = 5, "not permitted (403), or by the profile"
    NOT_FOUND = 6, "not found (404)"
    CONFLICT = 7, "conflict (409, nothing changed), already done from here, or busy in another process"
    REFUSED = 8, "refused by the service (400, 422, 301, 307, 308, ...)"
    RATE_LIMITED = 9, "rate limited (429)"
    READ_FAILED = 10, "a read failed at the service: 5xx, time-out, unreadable reply"
    NO_ANSWER = 11, "no connection, and nothing was sent"
    UNKNOWN = 12, "a write was sent, but its outcome is unknown or its result could not be printed"
    WAIT_EXPIRED = 13, "the wait's deadline passed"
    SIGNATURE = 14, "a signature or a forward failed"
    PARTIAL = 15, "several items: some failed, none unknown"
    CHECK_FAILED = 16, "a check failed; or done, but not as expected: do not repeat"
    LOCAL_STATE = 17, "local state unusable (journal or sandbox store, output); nothing was sent"
    INTERRUPTED = 130, "interrupted (Ctrl-C); no write is left unknown"
    TERMINATED = 143, "terminated (SIGTERM); no write is left unknown"
