"""The settings of a rehearsal: faults by operation, and variants of details that the interface leaves open.

    fault.OPERATION=KIND[:TIME][,COUNTx|,PERCENT%]      fault.create=drop-reply,3x
    variant.NAME=VALUE                                  variant.prefix=/v1

`off` removes a fault. The first value of a variant is its default. The syntax is the same on the command line, over
HTTP and in the store; only this module reads and writes it. The settings are in the store, so a served sandbox and
an in-process one behave the same: each request reads the settings, and counts down the fault that it uses.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from escrowctl.contract.operations import API_PREFIXES, OPERATIONS
from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.sandbox.seed import draw_number
from escrowctl.sandbox.store import Store

FAULT_PREFIX, VARIANT_PREFIX = "fault.", "variant."
MAX_FAULT_SECONDS = 600

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "prefix": API_PREFIXES,
    "fields": ("plain", "camel", "envelope", "foreign"),
    "created": ("200", "201"),
    "release": ("record", "empty"),
    "idempotent": ("off", "on"),
    "errors": ("problem", "object", "message", "text"),
}
"""The possible values of each variant. The first value is the default."""


class FaultKind(StrEnum):
    """A kind of fault. The request takes effect anyway, unless it is throttled or reset."""

    DROP_REPLY = "drop-reply"
    LATENCY = "latency"
    THROTTLED = "429"
    FAILED = "500"
    BAD_JSON = "bad-json"
    TRUNCATED = "truncated"
    RESET = "reset"


class Fault(NamedTuple):
    """One fault. It affects the next `left` requests, or `percent` of the requests, or all if both are None.

    `seconds` is the latency or the Retry-After; 1 if not given.
    """

    kind: FaultKind
    seconds: float
    left: int | None
    percent: int | None


Settings = Mapping[str, str]
"""Name of a setting -> its value as typed. A fault that is off and a variant with its default are left out."""

_FAULT_PATTERN = (
    r"(?P<kind>[a-z0-9-]+)(?::(?P<time>[0-9]{1,6})(?P<time_unit>ms|s|m))?(?:,(?P<share>[0-9]{1,4})(?P<unit>[x%]))?"
)
_SECONDS_PER_UNIT: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0}
_OFF = "off"


class Rehearsal:
    """Reads, changes and uses the settings in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> dict[str, str]:
        """Return the current settings."""
        with self._store.reading() as connection:
            return dict(connection.execute("SELECT name, value FROM settings ORDER BY name").fetchall())

    def change(self, texts: Mapping[str, str]) -> None:
        """Set each name to its value. If it raises EscrowctlError `ErrorCode.BAD_VALUE`, none is set."""
        for name, value in texts.items():
            check_setting(name, value)
        with self._store.writing() as connection:
            for name, value in texts.items():
                _store_setting(connection, name, value)

    def clear(self) -> None:
        """Remove every setting."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM settings")

    def use_fault(self, name: str) -> Fault | None:
        """Return the fault that the setting `name` has for one request, or None. Count the fault's `left` down."""
        with self._store.writing() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            if row is None:
                return None
            fault = _read_fault(name, row["value"])
            if fault.percent is not None:
                return fault if draw_number(connection, 100) < fault.percent else None
            if fault.left is not None:
                fewer = re.sub(",[0-9]+x", f",{fault.left - 1}x", row["value"])
                _store_setting(connection, name, fewer if fault.left > 1 else _OFF)
            return fault


def _store_setting(connection: sqlite3.Connection, name: str, value: str) -> None:
    if value == VARIANTS.get(name.removeprefix(VARIANT_PREFIX), (_OFF,))[0]:
        connection.execute("DELETE FROM settings WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (name, value))


def find_variant_value(settings: Settings, name: str) -> str:
    """Return the value of a variant in these settings, or its default."""
    return settings.get(VARIANT_PREFIX + name, VARIANTS[name][0])


def read_settings(typed: Iterable[str]) -> dict[str, str]:
    """Check `NAME=VALUE` texts, and return the values by name. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    texts: dict[str, str] = {}
    for text in typed:
        name, equals, texts[name] = text.partition("=")
        if not equals:
            raise bad_value(f'"{text}" has no value: write NAME=VALUE, such as fault.create=drop-reply.')
        check_setting(name, texts[name])
    return texts


def check_setting(name: str, value: str) -> None:
    """Check the value of a setting, which may be `off` for a fault, or the default of a variant.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`; its message lists the possible names or values.
    """
    kind, dot, word = name.partition(".")
    if kind + dot == FAULT_PREFIX:
        words = [operation.word for operation in OPERATIONS]
        if word not in words:
            raise _bad_choice(name, f'there is no operation "{word}"', words)
        if value != _OFF:
            _read_fault(f"{name}={value}", value)
        return
    if kind + dot != VARIANT_PREFIX or word not in VARIANTS:
        names = (f"{FAULT_PREFIX}OPERATION", *(f"{VARIANT_PREFIX}{variant}" for variant in VARIANTS))
        raise _bad_choice(name, "there is no such setting", names)
    if value not in VARIANTS[word]:
        raise _bad_choice(f"{name}={value}", "the variant has no such value", VARIANTS[word])


def _read_fault(typed: str, value: str) -> Fault:
    found = re.fullmatch(_FAULT_PATTERN, value, re.ASCII)
    if found is None:
        raise bad_value(
            f'"{typed}" is not a fault: write drop-reply or latency:2s; add ,3x for the next three requests or ,20%'
            " for one in five."
        )
    if found["kind"] not in set(FaultKind):
        raise _bad_choice(typed, f'there is no fault "{found["kind"]}"', FaultKind)
    kind, share, unit = FaultKind(found["kind"]), int(found["share"]) if found["share"] else None, found["unit"]
    seconds = int(found["time"]) * _SECONDS_PER_UNIT[found["time_unit"]] if found["time"] else 1.0
    may_have_time = kind is FaultKind.LATENCY or (kind is FaultKind.THROTTLED and found["time_unit"] != "ms")
    has_wrong_time = not may_have_time if found["time"] else kind is FaultKind.LATENCY
    if has_wrong_time or not 0 < seconds <= MAX_FAULT_SECONDS:
        raise bad_value(f'"{typed}": only latency (always) and 429 (in s or m) have a time, and it is at most 10m.')
    if share == 0 or (unit == "%" and share is not None and share > 100):
        raise bad_value(f'"{typed}" is out of range: a count is 1x to 9999x, a chance 1% to 100%.')
    return Fault(kind, seconds, share if unit == "x" else None, share if unit == "%" else None)


def _bad_choice(typed: str, flaw: str, choices: Iterable[str]) -> EscrowctlError:
    return bad_value(f'"{typed}": {flaw}; choose one of {", ".join(choices)}.')
