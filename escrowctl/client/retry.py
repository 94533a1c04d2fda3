"""Decide whether a request is sent again, how often, and after which random delay.

A read is repeated if the failure may be temporary. A write is repeated if it was never sent. It is also repeated
after 425 (RFC 8470 section 5.2) or 429 (RFC 6585 section 4), if the profile says that the service sends these
statuses before it processes a request; and if the profile says that the service deduplicates by Idempotency-Key.
RFC 9110 section 9.2.2 forbids repeating any other write.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from escrowctl.client.http import THROTTLED_STATUSES, Answer, Exchange, Fault
from escrowctl.contract.json import Defect
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

MAX_ATTEMPTS = 3
"""The most attempts to send one request."""

MAX_RETRY_AFTER_SECONDS = 60.0
"""Seconds. If Retry-After is longer, escrowctl does not retry: the operator decides."""

_MIN_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.5, 5.0
_MIN_REPORTED_SECONDS = 1.0
"""Seconds. A shorter wait is reported as 1 s."""
_MAX_TOKENS, _TOKENS_PER_SUCCESS = 10.0, 0.1

_REQUEST_TIMEOUT, _CONFLICT, _SERVER_ERROR, _NOT_IMPLEMENTED = 408, 409, 500, 501
_UNSENT_FAULTS = frozenset({Fault.NO_NAME, Fault.NO_CONNECTION, Fault.CONNECT_TIMEOUT, Fault.PROXY})
_UNANSWERED_FAULTS = frozenset({Fault.TIMEOUT, Fault.BROKEN_OFF})


class Retry:
    """The retries of one run. They share a budget of tokens, so that they do not flood a service that is down.

    A retry costs one token, and a success returns a tenth of a token. With an empty budget, at most one request in
    ten is a retry.
    """

    def __init__(self, runtime: Runtime, signals: Signals, report: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._signals = signals
        self.report = report
        self._tokens = _MAX_TOKENS

    def make_attempts(self, seconds: float) -> "Attempts":
        """Return the attempts of one request. No retry begins once the attempts have taken `seconds` together."""
        return Attempts(self, self._runtime.monotonic, seconds)

    def wait_before_retry(self, attempts: "Attempts", exchange: Exchange) -> bool:
        """Wait before a retry and return True. Return False if Retry-After is too long, or a limit is reached.

        The limits: the number of `attempts`, their seconds, and the budget. Raises `Stopped` if a signal ends the wait.
        """
        attempts.left -= self._runtime.monotonic() - attempts.started_at
        asked = find_retry_after(exchange.answer, now=self._runtime.now())
        is_over = attempts.count >= MAX_ATTEMPTS or attempts.left <= 0 or self._tokens < 1
        if is_over or (asked or 0.0) > MAX_RETRY_AFTER_SECONDS:
            return False
        self._tokens -= 1
        longest = min(_MAX_BACKOFF_SECONDS, 2.0**attempts.count * _MIN_BACKOFF_SECONDS)
        backoff = _MIN_BACKOFF_SECONDS + self._runtime.random_fraction() * (longest - _MIN_BACKOFF_SECONDS)
        seconds = max(asked or 0.0, backoff)
        reported, next_attempt = max(seconds, _MIN_REPORTED_SECONDS), attempts.count + 1
        answer = exchange.answer
        reason = f"the service replied {answer.status}" if answer else (exchange.fault or Fault.BROKEN_OFF).value
        self.report(f"{reason}; retrying in {reported:.0f} s, attempt {next_attempt} of {MAX_ATTEMPTS}")
        with self._signals.let_through():
            self._runtime.sleep(seconds)
        return True

    def note_success(self) -> None:
        """Put a tenth of a token back into the budget."""
        self._tokens = min(_MAX_TOKENS, self._tokens + _TOKENS_PER_SUCCESS)


class Attempts:
    """The attempts to send one request: their `count`, the seconds `left` for them, and when the last one started."""

    def __init__(self, retry: Retry, monotonic: Callable[[], float], seconds: float) -> None:
        self._retry = retry
        self._monotonic = monotonic
        self.left = seconds
        self.count = 0
        self.started_at = 0.0

    def start(self) -> None:
        """Count an attempt that begins now."""
        self.count += 1
        self.started_at = self._monotonic()

    def wait_if_repeatable(self, exchange: Exchange, *, allowed: bool) -> bool:
        """Return whether to retry; if so, first wait. `allowed`: the result (`exchange`) permits a retry."""
        if allowed:
            return self._retry.wait_before_retry(self, exchange)
        if exchange.answer is not None and exchange.answer.status < _SERVER_ERROR:
            self._retry.note_success()
        return False


def describe_attempts(count: int) -> str:
    """Return a text such as ` after 3 attempts`; an empty text for one attempt."""
    return f" after {count} attempts" if count > 1 else ""


def is_throttled(exchange: Exchange) -> bool:
    """Whether the service replied that the request came too early, or that there were too many."""
    return exchange.answer is not None and exchange.answer.status in THROTTLED_STATUSES


def may_read_again(exchange: Exchange) -> bool:
    """Whether a read with this result may succeed if it is sent again."""
    answer = exchange.answer
    if answer is None:
        return exchange.fault in _UNSENT_FAULTS | _UNANSWERED_FAULTS
    return answer.status in THROTTLED_STATUSES or _is_temporary_failure(answer)


def may_write_again(exchange: Exchange, *, may_repeat_throttled: bool, deduplicated: bool) -> bool:
    """Whether a write with this result may be sent again.

    `may_repeat_throttled`: the profile allows a retry after 425 or 429. `deduplicated`:
    the service recognises the Idempotency-Key. Then a 409 means that the first request is still in progress.
    """
    answer = exchange.answer
    if answer is None:
        never_sent = not exchange.sent and exchange.fault in _UNSENT_FAULTS
        return never_sent or (deduplicated and exchange.sent and exchange.fault in _UNANSWERED_FAULTS)
    if answer.status in THROTTLED_STATUSES:
        return may_repeat_throttled
    return deduplicated and (answer.status == _CONFLICT or _is_temporary_failure(answer))


def _is_temporary_failure(answer: Answer) -> bool:
    failed = answer.status >= _SERVER_ERROR and answer.status != _NOT_IMPLEMENTED
    return failed or answer.status == _REQUEST_TIMEOUT or answer.defect is Defect.CUT_SHORT


def find_retry_after(answer: Answer | None, *, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110 section 10.2.3); None without a valid header.

    A date in Retry-After counts from the reply's Date header, or from `now` if the reply has no Date.
    """
    text = (answer.find_header("Retry-After") or "").strip() if answer else ""
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text.lstrip("0")[:12] or 0)
    until = parse_http_date(text)
    if answer is None or until is None:
        return None
    return max(0.0, (until - (parse_http_date(answer.find_header("Date") or "") or now)).total_seconds())


def parse_http_date(text: str) -> datetime | None:
    """Return the date in a header (RFC 9110 section 5.6.7) as a time in UTC; None if `text` is not a date."""
    try:
        found = parsedate_to_datetime(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
