"""Typed ids and times that several commands take, checked before anything is opened or sent."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TextIO

from escrowctl.contract.identifiers import parse_ids
from escrowctl.errors import bad_value
from escrowctl.surroundings import timestamp

_MAX_LINE = 1024
_MAX_LINES = 1_000_000
_BYTE_ORDER_MARK = "\ufeff"


def read_ids(arguments: list[str] | None, stdin: TextIO, *, noun: str = "transaction") -> tuple[list[str], bool]:
    """Return the ids, and whether the answer is for several: `-` alone reads one id a line from stdin.

    Raises EscrowctlError (exit 2) for no id at all, an id twice, or one that cannot be one.
    """
    if not arguments:
        raise bad_value(f"no {noun} id is given: name one or more, or - to read them from standard input.")
    if arguments != ["-"]:
        if "-" in arguments:
            raise bad_value('"-" reads the ids from standard input: give it alone.')
        return parse_ids(arguments, noun=noun), len(arguments) > 1
    try:
        ids = parse_ids(_id_lines(stdin), noun=noun)
    except UnicodeDecodeError as error:
        raise bad_value("standard input is not text: write one id per line.") from error
    if not ids:
        raise bad_value("standard input has no id: write one id per line.")
    return ids, True


def _id_lines(stdin: TextIO) -> Iterator[str]:
    """Yield each line that is not blank; a line too long for an id is cut, and refused as one."""
    for number, line in enumerate(iter(partial(stdin.readline, _MAX_LINE), ""), start=1):
        if number > _MAX_LINES:
            raise bad_value(f"standard input has more than {_MAX_LINES} lines: give fewer ids at once.")
        if text := line.strip().strip(_BYTE_ORDER_MARK):
            yield text


def parse_duration(text: str, *, name: str) -> float:
    """Return seconds from `90s`, `10m` or `2h`; raises EscrowctlError (exit 2) otherwise."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text, re.ASCII)
    if not found:
        raise bad_value(f'{name} "{text}" is not a time: write one such as 90s, 10m or 2h.')
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


_AGO = {"m": 60, "h": 3600, "d": 86_400}


def parse_moment(text: str, *, name: str, now: datetime) -> str:
    """Return the timestamp of `2026-11-21` (UTC), of an RFC 3339 time, or of `24h` ago.

    Raises EscrowctlError (exit 2) otherwise.
    """
    try:
        if found := re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text, re.ASCII):
            return timestamp(now - timedelta(seconds=int(found[1]) * _AGO[found[2]]))
        moment = datetime.fromisoformat(text)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise bad_value(
            f'{name} "{text}" is not a time: write one such as 2026-11-21, 2026-11-21T03:12:44Z or 24h (ago).'
        ) from None
