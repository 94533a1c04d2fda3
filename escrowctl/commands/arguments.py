"""Typed values that several commands take, checked before anything is opened or sent."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TextIO

from escrowctl.client.orders import Circumstances
from escrowctl.contract.identifiers import fold_reference, parse_ids
from escrowctl.contract.money import may_be_listed, parse_currency
from escrowctl.contract.number import JsonValue
from escrowctl.contract.reply import Broken, Defect, read_reply
from escrowctl.errors import bad_value
from escrowctl.files import NotRegularError, TooLargeError, read_regular
from escrowctl.journal.model import parse_entry_name
from escrowctl.session import Session
from escrowctl.surroundings import timestamp

_MAX_TEXT = 500
_MAX_KEY = 255
_MAX_LINE = 1024
_MAX_LINES = 1_000_000
_MAX_DATA = 16 * 1024 * 1024
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
        raise bad_value("standard input is not text: give one id a line.") from error
    if not ids:
        raise bad_value("there is no id on standard input: give one a line.")
    return ids, True


def _id_lines(stdin: TextIO) -> Iterator[str]:
    """Yield what stands on each line but the blank ones; a line too long for an id is cut, and refused as one."""
    for number, line in enumerate(iter(partial(stdin.readline, _MAX_LINE), ""), start=1):
        if number > _MAX_LINES:
            raise bad_value(f"standard input has more than {_MAX_LINES} lines: give fewer ids at once.")
        if text := line.strip().strip(_BYTE_ORDER_MARK):
            yield text


def check_text(value: str | None, *, name: str) -> str | None:
    """Return a text for the journal: not empty, one line, at most 500 characters."""
    if value is None:
        return None
    if not fold_reference(value) or not value.isprintable() or len(value) > _MAX_TEXT:
        raise bad_value(f"{name} is one line of 1 to {_MAX_TEXT} printable characters.")
    return value


def check_idempotency_key(value: str | None) -> str | None:
    """Return a key that can stand in a header: 1 to 255 visible ASCII characters."""
    if value is not None and not re.fullmatch(rf"[!-~]{{1,{_MAX_KEY}}}", value, re.ASCII):
        raise bad_value(f"--idempotency-key is 1 to {_MAX_KEY} visible ASCII characters without spaces.")
    return value


def check_circumstances(
    idempotency_key: str | None, reason: str | None, despite: list[str] | None, *, reference: str | None = None
) -> Circumstances:
    """Return what was said beside a write."""
    return Circumstances(
        idempotency_key=check_idempotency_key(idempotency_key),
        reference=check_text(reference, name="--reference"),
        reason=check_text(reason, name="--reason"),
        despite=parse_despite(despite),
    )


def read_data(value: str | None, stdin: TextIO) -> dict[str, JsonValue]:
    """Return the JSON object that `--data` gives, as text, `@FILE`, or `@-` for `stdin`; read as strictly as
    a reply.
    """
    if value is None:
        return {}
    body = _read_source(value, stdin)
    reply = read_reply(body)
    if isinstance(reply, Broken):
        raise bad_value(
            f'--data {reply.defect.value}{_place(body, reply.defect)}: give a JSON object, such as \'{{"note": "x"}}\'.'
        )
    if not isinstance(reply.value, dict):
        raise bad_value('--data is JSON, but not an object: give one, such as \'{"note": "x"}\'.')
    return reply.value


def _read_source(value: str, stdin: TextIO) -> bytes:
    if not value.startswith("@"):
        return value.encode("utf-8", "surrogateescape")
    if value == "@-":
        buffer = getattr(stdin, "buffer", None)
        read = (
            stdin.read(_MAX_DATA + 1).encode("utf-8", "surrogateescape")
            if buffer is None
            else buffer.read(_MAX_DATA + 1)
        )
        if len(read) > _MAX_DATA:
            raise bad_value(f"--data @-: standard input is larger than {_MAX_DATA} bytes.")
        return read
    try:
        return read_regular(Path(value[1:]), limit=_MAX_DATA)[0]
    except NotRegularError as error:
        raise bad_value(f"--data {value} {error.strerror}: @- reads standard input.") from error
    except TooLargeError as error:
        raise bad_value(f"--data {value} {error.strerror}.") from error
    except OSError as error:
        raise bad_value(f"--data {value}: {error.strerror or error}.") from error


def _place(body: bytes, defect: Defect) -> str:
    """Return ` at line 1, column 2` where a body stops being JSON; never what stands there, which may be secret."""
    if defect in (Defect.NOT_JSON, Defect.CUT_SHORT):
        try:
            json.loads(body.decode(), parse_int=str, parse_float=str)
        except json.JSONDecodeError as error:
            return f" at line {error.lineno}, column {error.colno}"
    return ""


def parse_duration(text: str, *, name: str) -> float:
    """Return seconds from `90s`, `10m` or `2h`; raises EscrowctlError (exit 2) otherwise."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text, re.ASCII)
    if not found:
        raise bad_value(f'{name} "{text}" is not a time: write one such as 90s, 10m or 2h.')
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


_AGO = {"m": 60, "h": 3600, "d": 86_400}


def parse_moment(text: str, *, name: str, now: datetime) -> str:
    """Return the timestamp that `2026-11-21`, an RFC 3339 time, or `24h` ago stands for; dates are UTC's.

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


def parse_despite(names: list[str] | None) -> tuple[int, ...]:
    """Return the numbers of the journal entries that `--allow-duplicate` names."""
    return tuple(parse_entry_name(name) for name in names or [])


def check_currency(session: Session, text: str, *, name: str = "--currency") -> str:
    """Return a currency code of ISO 4217 or of the profile; the profile is asked only for a code it may list."""
    listed = session.service.currencies if may_be_listed(text) else frozenset()
    return parse_currency(text, listed=listed, name=name)
