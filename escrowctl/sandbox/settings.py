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
    """One fault. It affects the next `left` requests, or `percent` of the requests, or all if both are None."""

    kind: FaultKind
    time: str = ""
    """The latency or the Retry-After, as typed: `2s`; "" if not given."""
    left: int | None = None
    percent: int | None = None

    @property
    def seconds(self) -> float:
        """The latency or the Retry-After in seconds; 1 if not given."""
        found = re.fullmatch("([0-9]+)(ms|s|m)", self.time)
        return int(found[1]) * _SECONDS_PER_UNIT[found[2]] if found else 1.0

    def __str__(self) -> str:
        """Return the value of the setting as it would be typed, such as `drop-reply,3x`."""
        time = f":{self.time}" if self.time else ""
        share = f",{self.left}x" if self.left is not None else f",{self.percent}%" if self.percent is not None else ""
        return f"{self.kind}{time}{share}"


Settings = Mapping[str, Fault | str]
"""Name of a setting -> its fault, or the value of its variant. A variant with the default value is left out."""

_FAULT_PATTERN = r"(?P<kind>[a-z0-9-]+)(?::(?P<time>[0-9]{1,6}(?:ms|s|m)))?(?:,(?P<share>[0-9]{1,4})(?P<unit>[x%]))?"
_SECONDS_PER_UNIT: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0}

_SELECT_SETTINGS = "SELECT name, value FROM settings ORDER BY name"


class Rehearsal:
    """Reads, changes and uses the settings in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> Settings:
        """Return the current settings."""
        with self._store.reading() as connection:
            found = [(name, read_setting(name, value)) for name, value in connection.execute(_SELECT_SETTINGS)]
        return {name: setting for name, setting in found if setting is not None}

    def read_as_text(self) -> dict[str, str]:
        """Return the current settings, each value as it would be typed."""
        return {name: str(setting) for name, setting in self.read().items()}

    def change(self, texts: Mapping[str, str]) -> None:
        """Set each name to its value. If it raises EscrowctlError `ErrorCode.BAD_VALUE`, none is set."""
        found = {name: read_setting(name, value) for name, value in texts.items()}
        with self._store.writing() as connection:
            for name, setting in found.items():
                _store_setting(connection, name, setting)

    def clear(self) -> None:
        """Remove every setting."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM settings")

    def use_fault(self, name: str) -> Fault | None:
        """Return the fault that the setting `name` has for one request, or None. Count the fault's `left` down."""
        with self._store.writing() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            fault = read_setting(name, row["value"]) if row else None
            if not isinstance(fault, Fault):
                return None
            if fault.percent is not None:
                return fault if draw_number(connection, 100) < fault.percent else None
            if fault.left is not None:
                _store_setting(connection, name, fault._replace(left=fault.left - 1) if fault.left > 1 else None)
            return fault


def _store_setting(connection: sqlite3.Connection, name: str, setting: Fault | str | None) -> None:
    if setting is None:
        connection.execute("DELETE FROM settings WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (name, str(setting)))


def find_variant_value(settings: Settings, name: str) -> str:
    """Return the value of a variant in these settings, or its default."""
    return str(settings.get(VARIANT_PREFIX + name, VARIANTS[name][0]))


def read_settings(typed: Iterable[str]) -> dict[str, str]:
    """Check `NAME=VALUE` texts, and return the values by name. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    texts: dict[str, str] = {}
    for text in typed:
        name, equals, texts[name] = text.partition("=")
        if not equals:
            raise bad_value(f'"{text}" has no value: write NAME=VALUE, such as fault.create=drop-reply.')
        read_setting(name, texts[name])
    return texts


def read_setting(name: str, value: str) -> Fault | str | None:
    """Return a fault, the value of a variant, or None if the fault is `off` or the value is the default.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`; its message lists the possible names or values.
    """
    kind, dot, word = name.partition(".")
    if kind + dot == FAULT_PREFIX:
        words = [operation.word for operation in OPERATIONS]
        if word not in words:
            raise _bad_choice(name, f'there is no operation "{word}"', words)
        return None if value == "off" else _read_fault(f"{name}={value}", value)
    if kind + dot != VARIANT_PREFIX or word not in VARIANTS:
        names = (f"{FAULT_PREFIX}OPERATION", *(f"{VARIANT_PREFIX}{variant}" for variant in VARIANTS))
        raise _bad_choice(name, "there is no such setting", names)
    if value not in VARIANTS[word]:
        raise _bad_choice(f"{name}={value}", "the variant has no such value", VARIANTS[word])
    return None if value == VARIANTS[word][0] else value


def _read_fault(typed: str, value: str) -> Fault:
    found = re.fullmatch(_FAULT_PATTERN, value, re.ASCII)
    if found is None:
        raise bad_value(
            f'"{typed}" is not a fault: write drop-reply or latency:2s; add ,3x for the next three requests or ,20%'
            " for one in five."
        )
    if found["kind"] not in set(FaultKind):
        raise _bad_choice(typed, f'there is no fault "{found["kind"]}"', FaultKind)
    kind, time = FaultKind(found["kind"]), found["time"] or ""
    share = int(found["share"]) if found["share"] else None
    fault = Fault(kind, time, share if found["unit"] == "x" else None, share if found["unit"] == "%" else None)
    may_have_time = kind is FaultKind.LATENCY or (kind is FaultKind.THROTTLED and not time.endswith("ms"))
    if (
        (time and not may_have_time)
        or (kind is FaultKind.LATENCY and not time)
        or not 0 < fault.seconds <= MAX_FAULT_SECONDS
    ):
        raise bad_value(f'"{typed}": only latency (always) and 429 (in s or m) have a time, and it is at most 10m.')
    if share == 0 or (fault.percent or 0) > 100:
        raise bad_value(f'"{typed}" is out of range: a count is 1x to 9999x, a chance 1% to 100%.')
    return fault


def _bad_choice(typed: str, flaw: str, choices: Iterable[str]) -> EscrowctlError:
    listed = ", ".join(choices)
    return bad_value(f'"{typed}": {flaw}; choose one of {listed}.')
