"""What a service announces about the end of a call: the Deprecation (RFC 9745) and Sunset (RFC 8594) fields.

It is said once in a run, and fails nothing: a field that cannot be read is no announcement.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from escrowctl.client.exchange import Answer, Exchange, Request

_STRUCTURED_DATE = re.compile(r"@(-?[0-9]{1,12})", re.ASCII)


class Announcement:
    """Tells `say` of the first reply in a run that announces an end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said = False

    def observe(self, request: Request, exchange: Exchange, _seconds: float) -> None:
        """Look at one exchange."""
        if self._said or exchange.answer is None:
            return
        ends = describe_end(exchange.answer)
        if ends:
            self._said = True
            self._say(f"the service says of {request.method} {request.url}: {ends}")


def describe_end(answer: Answer) -> str:
    """Return what a reply announces (`deprecated since 2026-01-01, ends 2026-12-31`, in UTC); empty: nothing."""
    since = _structured_date(answer.header("Deprecation") or "")
    until = _http_date(answer.header("Sunset") or "")
    said = (f"deprecated since {since:%Y-%m-%d}" if since else "", f"ends {until:%Y-%m-%d}" if until else "")
    return ", ".join(part for part in said if part)


def _structured_date(text: str) -> datetime | None:
    """Read a Date of structured fields (RFC 9651 section 3.3.7): `@` and seconds since 1970."""
    found = _STRUCTURED_DATE.match(text.strip())
    try:
        return datetime.fromtimestamp(int(found[1]), UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None


def _http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
        return found.astimezone(UTC) if found.tzinfo else found
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
