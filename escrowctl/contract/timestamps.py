"""When something happened, as a service writes it: the interface shows no format of a time."""

import re
from datetime import UTC, datetime

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


def read_time(text: str | None) -> datetime | None:
    """Return the moment that a service's timestamp names, in UTC unless it says otherwise; None for other texts."""
    # Without its hyphens, a count of milliseconds such as 1801010112345 would be a day of the year 1801.
    if text is None or not re.match(_DATE, text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
