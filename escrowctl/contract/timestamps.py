"""Timestamps as a service writes them: the interface shows no format."""

import re
from datetime import UTC, datetime

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_YEARS = range(2000, 9999)
"""Other years mean a time that is not known, such as 0001, 1970 and 9999."""


def read_time(text: str | None) -> datetime | None:
    """Return the moment in UTC that a service's timestamp names; None for other texts, and for unknown times."""
    # Without its hyphens, a count of milliseconds such as 1801010112345 would be a day of the year 1801.
    if text is None or not re.match(_DATE, text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found.year in _YEARS else None
