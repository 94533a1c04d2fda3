"""The settings of a rehearsal, as text: faults by operation, and variants of details that the interface leaves open.

    fault.OPERATION=KIND[:TIME][,COUNTx|,PERCENT%]      fault.create=drop-reply,3x
    variant.NAME=VALUE                                  variant.prefix=/v1

`off` removes a fault, and the first value of a variant is the default. Only this module reads and writes the
syntax. It is the same on the command line, over HTTP and in the store.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.operations import (
    API_PREFIXES,
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.errors import EscrowctlError, bad_value

FAULT, VARIANT = "fault.", "variant."
OFF = "off"
MAX_SECONDS = 600

OPERATION_WORDS: Mapping[str, Operation] = MappingProxyType(
    {
        "create": CREATE_TRANSACTION,
        "get": GET_TRANSACTION,
        "release": RELEASE_TRANSACTION,
        "list": LIST_TRANSACTIONS,
        "update": UPDATE_TRANSACTION,
        "user": GET_USER,
        "webhook": CREATE_WEBHOOK,
        "webhooks": LIST_WEBHOOKS,
    }
)
"""The word for an operation in a setting."""

VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prefix": API_PREFIXES,
        "fields": ("plain", "camel", "envelope", "foreign"),
        "created": ("200", "201"),
        "release": ("record", "empty"),
        "idempotent": ("off", "on"),
        "errors": ("problem", "object", "message", "text"),
    }
)
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
    """One fault: `seconds` of latency or Retry-After; for the next `left` requests, `percent` of them, or always."""

    kind: FaultKind
    seconds: float = 0.0
    left: int | None = None
    percent: int | None = None

    def __str__(self) -> str:
        """Return the text of the setting."""
        time = f":{_write_time(self.seconds)}" if self.seconds else ""
        share = f",{self.left}x" if self.left is not None else f",{self.percent}%" if self.percent is not None else ""
        return f"{self.kind}{time}{share}"


_FAULT = r"(?P<kind>[a-z0-9-]+)(?::(?P<time>[0-9]{1,6})(?P<unit>ms|s|m))?(?:,(?P<share>[0-9]{1,4})(?P<of>[x%]))?"
_UNITS: Mapping[str, float] = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0})
_EXAMPLE = "write drop-reply or latency:2s; add ,3x for the next three requests or ,20% for one in five"


class Settings(NamedTuple):
    """All settings: faults by the word of their operation, and the variants with another value than the default."""

    faults: Mapping[str, Fault] = MappingProxyType({})
    variants: Mapping[str, str] = MappingProxyType({})

    def variant(self, name: str) -> str:
        """The value of a variant."""
        return self.variants.get(name, VARIANTS[name][0])

    def texts(self) -> dict[str, str]:
        """Return the settings as text: name -> value."""
        faults = {f"{FAULT}{word}": str(fault) for word, fault in self.faults.items()}
        return faults | {f"{VARIANT}{name}": value for name, value in self.variants.items()}


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
    if name.startswith(FAULT):
        word = name.removeprefix(FAULT)
        if word not in OPERATION_WORDS:
            raise _not_one_of(name, f'there is no operation "{word}"', OPERATION_WORDS)
        return None if value == OFF else _read_fault(f"{name}={value}", value)
    if not name.startswith(VARIANT) or name.removeprefix(VARIANT) not in VARIANTS:
        names = (f"{FAULT}OPERATION", *(f"{VARIANT}{variant}" for variant in VARIANTS))
        raise _not_one_of(name, "there is no such setting", names)
    values = VARIANTS[name.removeprefix(VARIANT)]
    if value not in values:
        raise _not_one_of(f"{name}={value}", "there is no such variant", values)
    return None if value == values[0] else value


def read_settings(texts: Mapping[str, str]) -> Settings:
    """Read all settings. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    read = {name: read_setting(name, value) for name, value in texts.items()}
    return Settings(
        {name.removeprefix(FAULT): one for name, one in read.items() if isinstance(one, Fault)},
        {name.removeprefix(VARIANT): one for name, one in read.items() if isinstance(one, str)},
    )


def _read_fault(typed: str, value: str) -> Fault:
    found = re.fullmatch(_FAULT, value, re.ASCII)
    if found is None:
        raise bad_value(f'"{typed}" is not a fault: {_EXAMPLE}.')
    kind = next((one for one in FaultKind if one == found["kind"]), None)
    if kind is None:
        raise _not_one_of(typed, f'there is no fault "{found["kind"]}"', FaultKind)
    share = int(found["share"]) if found["share"] else None
    seconds = _read_seconds(kind, found["time"], found["unit"])
    if seconds is None:
        raise bad_value(f'"{typed}": latency needs a time of at most 10m, 429 may have one in s, the others have none.')
    if share == 0 or (found["of"] == "%" and share is not None and share > 100):
        raise bad_value(f'"{typed}" is out of range: a count is 1x to 9999x, a chance 1% to 100%.')
    return Fault(kind, seconds, share if found["of"] == "x" else None, share if found["of"] == "%" else None)


def _read_seconds(kind: FaultKind, time: str | None, unit: str) -> float | None:
    """Return the seconds of a fault, 0 if its kind has none; None if they do not fit its kind."""
    if time is None:
        return {FaultKind.LATENCY: None, FaultKind.THROTTLED: 1.0}.get(kind, 0.0)
    seconds = int(time) * _UNITS[unit]
    is_usable = kind is FaultKind.LATENCY or (kind is FaultKind.THROTTLED and unit != "ms")
    return seconds if is_usable and 0 < seconds <= MAX_SECONDS else None


def _write_time(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def _not_one_of(typed: str, why: str, choices: Iterable[str]) -> EscrowctlError:
    return bad_value(f'"{typed}": {why}; choose one of {", ".join(choices)}.')
