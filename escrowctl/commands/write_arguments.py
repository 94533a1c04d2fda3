"""Typed values that the commands that write take, checked before anything is opened or sent."""

import json
import re
from pathlib import Path
from typing import TextIO

from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.money import Money, check_minor_digits, may_be_listed, parse_amount, parse_currency
from escrowctl.contract.number import JsonValue
from escrowctl.contract.reply import Broken, Defect, read_reply
from escrowctl.errors import bad_value
from escrowctl.files import NotRegularError, TooLargeError, read_regular
from escrowctl.journal.entries import parse_entry_name
from escrowctl.session import Session
from escrowctl.writes.requests import WriteOptions

_MAX_TEXT = 500
_MAX_KEY = 255
_MAX_DATA = 16 * 1024 * 1024


def parse_money(session: Session, amount: str, currency: str) -> Money:
    """Return an amount of a currency, exactly as typed; raises EscrowctlError for what could be read two ways."""
    return check_minor_digits(parse_amount(amount), check_currency(session, currency))


def check_text(value: str | None, *, name: str) -> str | None:
    """Return a text for the journal: not empty, one line, at most 500 characters."""
    if value is None:
        return None
    if not fold_reference(value) or not value.isprintable() or len(value) > _MAX_TEXT:
        raise bad_value(f"{name} is one line of 1 to {_MAX_TEXT} printable characters.")
    return value


def _check_idempotency_key(value: str | None) -> str | None:
    """Return a key that fits in a header: 1 to 255 visible ASCII characters."""
    if value is not None and not re.fullmatch(rf"[!-~]{{1,{_MAX_KEY}}}", value, re.ASCII):
        raise bad_value(f"--idempotency-key is 1 to {_MAX_KEY} visible ASCII characters without spaces.")
    return value


def check_options(
    idempotency_key: str | None, reason: str | None, duplicates: list[str] | None, *, reference: str | None = None
) -> WriteOptions:
    """Return what an operator adds to a write; `duplicates` are names of journal entries."""
    return WriteOptions(
        idempotency_key=_check_idempotency_key(idempotency_key),
        reference=check_text(reference, name="--reference"),
        reason=check_text(reason, name="--reason"),
        allowed_duplicates=tuple(parse_entry_name(name) for name in duplicates or []),
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
    """Return ` at line 1, column 2` where a body stops being JSON; never what is there, which may be secret."""
    if defect in (Defect.NOT_JSON, Defect.CUT_SHORT):
        try:
            json.loads(body.decode(), parse_int=str, parse_float=str)
        except json.JSONDecodeError as error:
            return f" at line {error.lineno}, column {error.colno}"
    return ""


def check_currency(session: Session, text: str, *, name: str = "--currency") -> str:
    """Return a currency code of ISO 4217 or of the profile; the profile is read only for a code it may list."""
    listed = session.service.currencies if may_be_listed(text) else frozenset()
    return parse_currency(text, listed=listed, name=name)
