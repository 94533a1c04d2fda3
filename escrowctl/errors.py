"""The expected failures of escrowctl, and the exit codes of the program.

    Exception
      EscrowctlError        an expected failure: a message, an `ErrorCode`, and hints
      OutputClosedError     the reader of stdout closed the pipe
    BaseException
      Stopped               a signal asked the program to end (signals.py raises it)

These exceptions carry facts, not formatted text. Only `main` turns them into output and an exit code. Any
other exception that reaches `main` is a defect in escrowctl.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import NamedTuple


class ExitCode(IntEnum):
    """The exit codes that scripts may branch on. README and `help exit-codes` are generated from this list."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> "ExitCode":
        """Create an exit code with the sentence that documents it."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "success (an empty list is success too)"
    DEFECT = 1, "internal error in escrowctl"
    USAGE = 2, "usage, bad value, bad config; nothing was sent"
    DECLINED = 3, "not confirmed (declined, or no terminal to ask), or an --expect-* check failed"
    UNAUTHENTICATED = 4, "not authenticated: nothing configured, no usable key, 401"
    FORBIDDEN = 5, "forbidden by the service (403) or by the profile"
    NOT_FOUND = 6, "not found (404)"
    CONFLICT = 7, "conflict (409), already done, or another process is working on the same write"
    REFUSED = 8, "refused by the service (400, 422, 301, 307, 308, ...)"
    RATE_LIMITED = 9, "rate limited (429)"
    READ_FAILED = 10, "a read failed at the service: 5xx, time-out, unreadable reply"
    NO_CONNECTION = 11, "no connection, and nothing was sent"
    UNKNOWN = 12, "the outcome of a write, sent now or earlier, is unknown; or its result could not be printed"
    WAIT_EXPIRED = 13, "a deadline passed; a release with --wait was accepted but not confirmed: do not repeat it"
    SIGNATURE = 14, "invalid signature, or an event was not forwarded"
    PARTIAL = 15, "several items: some failed, but no outcome is unknown"
    CHECK_FAILED = 16, "a check failed; or a write was accepted, but not with the expected result: do not repeat it"
    LOCAL_STATE = 17, "local state unusable (journal, sandbox store, output); nothing was sent"
    INTERRUPTED = 130, "interrupted (Ctrl-C); no write of this command has an unknown outcome"
    TERMINATED = 143, "terminated (SIGTERM, SIGHUP); no write of this command has an unknown outcome"


class Outcome(StrEnum):
    """The outcome of a write, as far as it is known. Each row of a batch has exactly one of the four."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"

    @property
    def label(self) -> str:
        """The outcome as text for people, such as `not sent`."""
        return self.value.replace("_", " ")


class Effect(StrEnum):
    """A sentence, without its full stop, that says what a failed command did not do.

    `NOTHING_SENT_NOW`: this command sent nothing, but an earlier one may have sent the same write.
    """

    NOTHING_CHANGED = "Nothing was changed"
    NOTHING_IMPORTED = "Nothing was imported"
    NOTHING_RECORDED = "Nothing was recorded"
    NOTHING_SENT = "Nothing was sent"
    NOTHING_SENT_NOW = "This command sent nothing"
    NOTHING_STORED = "Nothing was stored"
    ONLY_READ = "This command only reads: it changed nothing"


class ErrorCode(StrEnum):
    """All values of `error.code` in JSON errors. Each code has an exit code; several codes may share it."""

    exit_code: ExitCode

    def __new__(cls, value: str, exit_code: ExitCode) -> "ErrorCode":
        """Create an error code with its exit code."""
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
    NO_CONNECTION = "no_connection", ExitCode.NO_CONNECTION
    OUTCOME_UNKNOWN = "outcome_unknown", ExitCode.UNKNOWN
    EARLIER_UNKNOWN = "earlier_unknown", ExitCode.UNKNOWN
    ID_UNKNOWN = "id_unknown", ExitCode.UNKNOWN
    RESULT_NOT_PRINTED = "result_not_printed", ExitCode.UNKNOWN
    WAIT_EXPIRED = "wait_expired", ExitCode.WAIT_EXPIRED
    BAD_SIGNATURE = "bad_signature", ExitCode.SIGNATURE
    NOT_FORWARDED = "not_forwarded", ExitCode.SIGNATURE
    SOME_UNKNOWN = "some_unknown", ExitCode.UNKNOWN
    SOME_FAILED = "some_failed", ExitCode.PARTIAL
    CHECK_FAILED = "check_failed", ExitCode.CHECK_FAILED
    NOT_RELEASED = "not_released", ExitCode.CHECK_FAILED
    JOURNAL_UNUSABLE = "journal_unusable", ExitCode.LOCAL_STATE
    STATE_UNUSABLE = "state_unusable", ExitCode.LOCAL_STATE
    OUTPUT_UNUSABLE = "output_unusable", ExitCode.LOCAL_STATE
    INTERRUPTED = "interrupted", ExitCode.INTERRUPTED
    TERMINATED = "terminated", ExitCode.TERMINATED


class Hint(NamedTuple):
    """One line of advice: a sentence, or a command of escrowctl without the program's name.

    A command is printed after the program and the options for this service; a `bare` command, only after the
    program. `label` says when or why to follow the hint.
    """

    text: str
    label: str = ""
    is_command: bool = False
    bare: bool = False


Hints = str | Hint | tuple[str | Hint, ...]


def command(words: str, label: str = "", *, bare: bool = False) -> Hint:
    """Return a hint with a command, such as `tx get tx_1`. `bare`: without the options for this service."""
    return Hint(words, label, is_command=True, bare=bare)


class Invocation(NamedTuple):
    """The start of commands in hints: the program as it was called, the variables and options for this service."""

    program: str
    options: str = ""
    variables: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.variables, self.program, self.options)))


class Reason:
    """Why a write or the journal is refused, in more detail than the code: the values of an error's `reason`.

    The error's facts say which entry or file. Not an enum: creating so large an enum takes half a millisecond.
    """

    # The journal itself
    CLOSED = "closed"
    MOVED = "moved"
    DAMAGED = "damaged"
    DISK_FAILED = "disk_failed"
    DISK_FULL = "disk_full"
    EXPORT_OF_ANOTHER = "export_of_another"
    FILE_MISSING = "file_missing"
    FILE_UNUSABLE = "file_unusable"
    LOCKED = "locked"
    NOT_CONNECTED = "not_connected"
    NOT_CREATED = "not_created"
    NOT_IMPORTED = "not_imported"
    NO_DRIVER = "no_driver"
    OWN_UNUSABLE = "own_unusable"
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
    RUN_ENDED = "run_ended"
    # The write that was refused, or its result
    CREATED_DIFFERENTLY = "created_otherwise"
    FIELD_NOT_FOUND = "field_not_found"
    ID_MISREAD = "id_misread"
    ID_NOT_RECOGNISED = "id_not_recognised"
    IN_PROGRESS = "in_progress"
    MAY_BE_IN_PROGRESS = "may_be_in_progress"
    MONEY_CHANGED = "money_changed"
    NOT_OPENED = "not_opened"
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


class EscrowctlError(Exception):
    """An expected failure: what failed, and hints for the next command.

    `message` has one or two sentences. The printer adds `effect` as the last sentence. `outcome` is set if a write
    failed. `facts` are further members of the JSON error, such as `http_status`. Their values are JSON values.
    `reason` names a case for which `commands.advice` adds hints.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        hint: Hints = (),
        outcome: Outcome | None = None,
        effect: Effect | None = None,
        facts: Mapping[str, object] = MappingProxyType({}),
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        given = (hint,) if isinstance(hint, str | Hint) else hint
        self.hints = tuple(Hint(one) if isinstance(one, str) else one for one in given if one)
        self.outcome = outcome
        self.effect = effect
        self.subject: str | None = None
        """The id that the error is about, if the command has several ids."""
        self.facts = facts
        self.reason = reason


class OutputClosedError(Exception):
    """The reader of stdout closed the pipe: nothing more can be shown. The command itself did not fail."""


@contextmanager
def printing_result(done: str | None, facts: Mapping[str, object] | None = None) -> Iterator[None]:
    """Raise `RESULT_NOT_PRINTED` if the block fails to print the result of a write.

    `done` says which write was done: it begins the message. If `done` is None, the block's error is not changed.
    """
    try:
        yield
    except Exception as error:
        if done is None:
            raise
        why = explain_print_failure(error)
        message = f"{done}, but escrowctl could not print the result: {why} Do not repeat this command."
        raise EscrowctlError(ErrorCode.RESULT_NOT_PRINTED, message, outcome=Outcome.DONE, facts=facts or {}) from error


def explain_print_failure(error: Exception) -> str:
    """Return a sentence that says why `error` prevented printing."""
    if isinstance(error, EscrowctlError):
        return error.message
    if isinstance(error, OutputClosedError):
        return "the output was closed."
    return f"internal error in escrowctl ({type(error).__name__})."


@contextmanager
def adding_id(resource_id: str) -> Iterator[None]:
    """Add `resource_id` as the fact `id` to each EscrowctlError that the block raises."""
    try:
        yield
    except EscrowctlError as error:
        error.facts = {**error.facts, "id": resource_id}
        raise


class Stopped(BaseException):
    """SIGINT, SIGTERM or SIGHUP asked the program to end: `code` is INTERRUPTED or TERMINATED.

    `progress` has sentences about the work done before the signal, or is empty. `effect` says what was not done.
    """

    def __init__(self, code: ErrorCode, progress: str = "", effect: Effect | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.progress = progress
        self.effect = effect


def not_sent(
    code: ErrorCode,
    message: str,
    *,
    hint: Hints = (),
    effect: Effect | None = Effect.NOTHING_SENT,
    facts: Mapping[str, object] = MappingProxyType({}),
    reason: str = "",
) -> EscrowctlError:
    """Return an error with the outcome `NOT_SENT`, for a failure before a request was sent."""
    return EscrowctlError(code, message, hint=hint, outcome=Outcome.NOT_SENT, effect=effect, facts=facts, reason=reason)


def bad_value(message: str, *, hint: Hints = (), effect: Effect | None = Effect.NOTHING_SENT) -> EscrowctlError:
    """Return a `BAD_VALUE` error for a typed value that cannot be used; nothing was sent."""
    return not_sent(ErrorCode.BAD_VALUE, message, hint=hint, effect=effect)


def bad_config(message: str, *, hint: Hints = ()) -> EscrowctlError:
    """Return a `BAD_CONFIG` error for a config file or variable that cannot be used; nothing was sent."""
    return not_sent(ErrorCode.BAD_CONFIG, message, hint=hint)
