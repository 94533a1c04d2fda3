"""Parse the durations and times that a user types."""

import re
from datetime import UTC, datetime, timedelta

from escrowctl.errors import bad_value

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str, *, name: str) -> timedelta:
    """Return the duration of `90s`, `10m`, `2h` or `7d`. `name` is the option. Raises `BAD_VALUE` otherwise."""
    duration = _read_duration(text)
    if duration is None:
        raise bad_value(f'{name} "{text}" is not a duration: write one such as 90s, 10m, 2h or 7d.')
    return duration


def parse_moment(text: str, *, name: str, now: datetime) -> datetime:
    """Return the UTC time of a date, an RFC 3339 time, or a duration before `now`. Raises `BAD_VALUE` otherwise."""
    try:
        if (duration := _read_duration(text)) is not None:
            return now - duration
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f'{name} "{text}" is not a time: write one such as 2026-11-21, 2026-11-21T03:12:44Z or 24h (ago).'
        raise bad_value(message) from None


def _read_duration(text: str) -> timedelta | None:
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text, re.ASCII)
    return timedelta(seconds=int(found[1]) * _UNIT_SECONDS[found[2]]) if found else None
