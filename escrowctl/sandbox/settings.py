"""The settings of a rehearsal: faults by operation, and variants of details that the interface leaves open.

    fault.OPERATION=KIND[:TIME][,COUNTx|,PERCENT%]      fault.create=drop-reply,3x
    variant.NAME=VALUE                                  variant.prefix=/v1

`off` removes a fault, and the first value of a variant is the default. Only this module reads and writes the
syntax. It is the same on the command line, over HTTP and in the store. Settings are in the store so that a served
sandbox and one in-process behave the same: read at each request, changed by commands, used up by requests.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from escrowctl.contract import operations
from escrowctl.contract.operations import API_PREFIXES, Operation
from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.sandbox.seed import draw_below
from escrowctl.sandbox.store import Store

FAULT, VARIANT = "fault.", "variant."
OFF = "off"
MAX_SECONDS = 600

OPERATION_WORDS: Mapping[Operation, str] = {
    operations.CREATE_TRANSACTION: "create",
    operations.GET_TRANSACTION: "get",
    operations.RELEASE_TRANSACTION: "release",
    operations.LIST_TRANSACTIONS: "list",
    operations.UPDATE_TRANSACTION: "update",
    operations.GET_USER: "user",
    operations.CREATE_WEBHOOK: "webhook",
    operations.LIST_WEBHOOKS: "webhooks",
}
"""The word for an operation in a setting."""

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "prefix": API_PREFIXES,
    "fields": ("plain", "camel", "envelope", "foreign"),
    "created": ("200", "201"),
    "release": ("record", "empty"),
    "idempotent": ("off", "on"),
    "errors": ("problem", "object", "message", "text"),
}
"""The values of each variant; the first is in effect unless another is set."""


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
    """One fault: for the next `left` requests, for `percent` of them, or for all."""

    kind: FaultKind
    time: str = ""
    """The latency or the Retry-After, as typed: `2s`."""
    left: int | None = None
    percent: int | None = None

    @property
    def seconds(self) -> float:
        """The latency or the Retry-After, which is 1 if not given."""
        found = re.fullmatch("([0-9]+)(ms|s|m)", self.time)
        return int(found[1]) * _UNITS[found[2]] if found else 1.0

    def __str__(self) -> str:
        """Return the text of the setting."""
        time = f":{self.time}" if self.time else ""
        share = f",{self.left}x" if self.left is not None else f",{self.percent}%" if self.percent is not None else ""
        return f"{self.kind}{time}{share}"


Settings = Mapping[str, Fault | str]
"""Name -> its fault, or its value if it is a variant with another value than the default."""

_FAULT = r"(?P<kind>[a-z0-9-]+)(?::(?P<time>[0-9]{1,6}(?:ms|s|m)))?(?:,(?P<share>[0-9]{1,4})(?P<of>[x%]))?"
_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0}
_EXAMPLE = "write drop-reply or latency:2s; add ,3x for the next three requests or ,20% for one in five"

_ALL = "SELECT name, value FROM settings ORDER BY name"
_SET = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Rehearsal:
    """The settings of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self) -> Settings:
        """Return the current settings."""
        with self._store.reading() as connection:
            found = [(name, read_setting(name, value)) for name, value in connection.execute(_ALL)]
        return {name: setting for name, setting in found if setting is not None}

    def texts(self) -> dict[str, str]:
        """Return the current settings as text."""
        return {name: str(setting) for name, setting in self.current().items()}

    def change(self, texts: Mapping[str, str]) -> None:
        """Set each name to its value, all or none; raises EscrowctlError `ErrorCode.BAD_VALUE`."""
        found = {name: read_setting(name, value) for name, value in texts.items()}
        with self._store.writing() as connection:
            for name, setting in found.items():
                _store(connection, name, setting)

    def clear(self) -> None:
        """Remove every setting."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM settings")

    def use_fault(self, name: str) -> Fault | None:
        """Return the fault of a setting for one request, and count it as used; None if there is none."""
        with self._store.writing() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            fault = read_setting(name, row["value"]) if row else None
            if not isinstance(fault, Fault):
                return None
            if fault.percent is not None:
                return fault if draw_below(connection, 100) < fault.percent else None
            if fault.left is not None:
                _store(connection, name, fault._replace(left=fault.left - 1) if fault.left > 1 else None)
            return fault


def _store(connection: sqlite3.Connection, name: str, setting: Fault | str | None) -> None:
    if setting is None:
        connection.execute("DELETE FROM settings WHERE name = ?", (name,))
    else:
        connection.execute(_SET, (name, str(setting)))


def find_variant(settings: Settings, name: str) -> str:
    """Return the value of a variant."""
    return str(settings.get(VARIANT + name, VARIANTS[name][0]))


def read_texts(typed: Iterable[str]) -> dict[str, str]:
    """Split `NAME=VALUE` texts and return them by name. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    texts: dict[str, str] = {}
    for text in typed:
        name, equals, texts[name] = text.partition("=")
        if not equals:
            raise bad_value(f'"{text}" has no value: write NAME=VALUE, such as fault.create=drop-reply.')
        read_setting(name, texts[name])
    return texts


def read_setting(name: str, value: str) -> Fault | str | None:
    """Return the fault or the value of the variant; None if the setting removes one.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`, which names the value and the possible ones.
    """
    kind, dot, word = name.partition(".")
    if kind + dot == FAULT:
        if word not in OPERATION_WORDS.values():
            raise _not_one_of(name, f'there is no operation "{word}"', OPERATION_WORDS.values())
        return None if value == OFF else _read_fault(f"{name}={value}", value)
    if kind + dot != VARIANT or word not in VARIANTS:
        names = (f"{FAULT}OPERATION", *(f"{VARIANT}{variant}" for variant in VARIANTS))
        raise _not_one_of(name, "there is no such setting", names)
    if value not in VARIANTS[word]:
        raise _not_one_of(f"{name}={value}", "there is no such variant", VARIANTS[word])
    return None if value == VARIANTS[word][0] else value


def _read_fault(typed: str, value: str) -> Fault:
    found = re.fullmatch(_FAULT, value, re.ASCII)
    if found is None:
        raise bad_value(f'"{typed}" is not a fault: {_EXAMPLE}.')
    if found["kind"] not in set(FaultKind):
        raise _not_one_of(typed, f'there is no fault "{found["kind"]}"', FaultKind)
    kind, time = FaultKind(found["kind"]), found["time"] or ""
    share = int(found["share"]) if found["share"] else None
    fault = Fault(kind, time, share if found["of"] == "x" else None, share if found["of"] == "%" else None)
    may_have_time = kind is FaultKind.LATENCY or (kind is FaultKind.THROTTLED and not time.endswith("ms"))
    if (time and not may_have_time) or (kind is FaultKind.LATENCY and not time) or not 0 < fault.seconds <= MAX_SECONDS:
        raise bad_value(f'"{typed}": latency needs a time of at most 10m, 429 may have one in s, the others have none.')
    if share == 0 or (fault.percent or 0) > 100:
        raise bad_value(f'"{typed}" is out of range: a count is 1x to 9999x, a chance 1% to 100%.')
    return fault


def _not_one_of(typed: str, why: str, choices: Iterable[str]) -> EscrowctlError:
    return bad_value(f'"{typed}": {why}; choose one of {", ".join(choices)}.')
