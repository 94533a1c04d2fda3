"""When something happened, as a service writes it: the interface shows no format of a time."""

from datetime import UTC, datetime


def read_time(text: str | None) -> datetime | None:
    """Return the moment that a service's timestamp names, in UTC unless it says otherwise; None for other texts."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
