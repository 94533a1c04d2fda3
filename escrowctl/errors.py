"""What can go wrong, as facts.

    Exception
      EscrowctlError        expected: one sentence, one closed code, one way on
    BaseException
      Stopped               a signal asked the program to end (signals.py raises it)

An expected failure carries facts and never formatted terminal text; `main` alone turns it into
output and an exit code. Anything else that reaches `main` is a defect in escrowctl.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from escrowctl.exits import ExitCode

NOTHING_SENT = "Nothing was sent."


class Sending(StrEnum):
    """Which of the three things a failed write says: not sent, refused, or not known; or done."""

    NOT_SENT = "not_sent"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    DONE = "done"


class ErrorCode(StrEnum):
    """The closed list of `error.code` values, finer than exit codes; each knows its exit code."""

    exit_code: ExitCode

    def __new__(cls, value: str, exit_code: ExitCode) -> "ErrorCode":
        """Bind the exit code to the word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.exit_code = exit_code
        return member

    DEFECT = "defect", ExitCode.DEFECT
    USAGE = "usage", ExitCode.USAGE
    BAD_VALUE = "bad_value", ExitCode.USAGE
    BAD_CONFIG = "bad_config", ExitCode.USAGE
    DECLINED = "declined", ExitCode.DECLINED
    CONFIRMATION_NEEDED = "confirmation_needed", ExitCode.DECLINED
    EXPECTATION_FAILED = "expectation_failed", ExitCode.DECLINED
    NOT_CONFIGURED = "not_configured", ExitCode.UNAUTHENTICATED
    KEY_MISSING = "key_missing", ExitCode.UNAUTHENTICATED
    NOT_AUTHENTICATED = "not_authenticated", ExitCode.UNAUTHENTICATED
    FORBIDDEN = "forbidden", ExitCode.FORBIDDEN
    READ_ONLY = "read_only", ExitCode.FORBIDDEN
    CAPPED = "capped", ExitCode.FORBIDDEN
    NOT_FOUND = "not_found", ExitCode.NOT_FOUND
    CONFLICT = "conflict", ExitCode.CONFLICT
    ALREADY_DONE = "already_done", ExitCode.CONFLICT
    KEY_REUSED = "key_reused", ExitCode.CONFLICT
    REFERENCE_REUSED = "reference_reused", ExitCode.CONFLICT
    BUSY = "busy", ExitCode.CONFLICT
    REFUSED = "refused", ExitCode.REFUSED
    REDIRECTED = "redirected", ExitCode.REFUSED
    RATE_LIMITED = "rate_limited", ExitCode.RATE_LIMITED
    READ_FAILED = "read_failed", ExitCode.READ_FAILED
    UNREADABLE_REPLY = "unreadable_reply", ExitCode.READ_FAILED
    NO_CONNECTION = "no_connection", ExitCode.NO_ANSWER
    OUTCOME_UNKNOWN = "outcome_unknown", ExitCode.UNKNOWN
    EARLIER_UNKNOWN = "earlier_unknown", ExitCode.UNKNOWN
    ID_UNKNOWN = "id_unknown", ExitCode.UNKNOWN
    RESULT_NOT_PRINTED = "result_not_printed", ExitCode.UNKNOWN
    WAIT_EXPIRED = "wait_expired", ExitCode.WAIT_EXPIRED
    SOME_UNKNOWN = "some_unknown", ExitCode.UNKNOWN
    SOME_FAILED = "some_failed", ExitCode.PARTIAL
    CHECK_FAILED = "check_failed", ExitCode.CHECK_FAILED
    NOT_RELEASED = "not_released", ExitCode.CHECK_FAILED
    JOURNAL_UNUSABLE = "journal_unusable", ExitCode.LOCAL_STATE
    STATE_UNUSABLE = "state_unusable", ExitCode.LOCAL_STATE
    OUTPUT_UNUSABLE = "output_unusable", ExitCode.LOCAL_STATE
    INTERRUPTED = "interrupted", ExitCode.INTERRUPTED
    TERMINATED = "terminated", ExitCode.TERMINATED


class EscrowctlError(Exception):
    """An expected failure: what happened, what was sent, and what to type next.

    `message` is one or two whole sentences, shown as they stand. `hint` lines can each be pasted or
    read on their own. `facts` join the JSON error (`http_status`, `request_id`, `entry`, ...); their
    values are JSON values.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        hint: str | tuple[str, ...] = (),
        sending: Sending | None = None,
        facts: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = (hint,) if isinstance(hint, str) else hint
        self.sending = sending
        self.facts = facts

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that this failure ends the program with."""
        return self.code.exit_code


class Stopped(BaseException):
    """SIGINT or SIGTERM asked the program to end; `code` says which.

    `standing`: sentences that say how things stand then, where whoever was interrupted knows it.
    """

    def __init__(self, code: ErrorCode, standing: str = "") -> None:
        super().__init__(code.value)
        self.code = code
        self.standing = standing


def bad_value(message: str, *, hint: str | tuple[str, ...] = ()) -> EscrowctlError:
    """A value that was typed cannot be used: exit 2, nothing sent."""
    return EscrowctlError(ErrorCode.BAD_VALUE, f"{message} {NOTHING_SENT}", hint=hint, sending=Sending.NOT_SENT)


def bad_config(message: str, *, hint: str | tuple[str, ...] = ()) -> EscrowctlError:
    """A file or variable that configures escrowctl cannot be used: exit 2, nothing sent."""
    return EscrowctlError(ErrorCode.BAD_CONFIG, f"{message} {NOTHING_SENT}", hint=hint, sending=Sending.NOT_SENT)
