"""What the journal's tables need of a database: statements with `?` for values, and `main.` before a table's name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from escrowctl.errors import EscrowctlError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Cursor(Protocol):
    """The rows of one statement."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows."""


class Database(Protocol):
    """A connection to the journal's tables, inside or outside a transaction.

    `location` is for messages. `json_text` is an SQL expression with `{column}` and `{name}`: a member of a JSON object
    as text. `row_locks` ends a query that passes over rows which another transaction has locked. `execute` and the
    cursor raise errors of the engine's own, which `translate` knows.
    """

    location: str
    json_text: str
    row_locks: str

    def execute(self, statement: str, values: Sequence[object] = ..., /) -> Cursor:
        """Execute one statement."""

    def send(self, statement: str, values: Sequence[object], /) -> object:
        """Execute one statement of a transaction that writes. An engine may do it, and fail, later."""

    def close(self) -> None:
        """Close the connection."""

    def translate(self, error: Exception) -> EscrowctlError | None:
        """Return `ErrorCode.JOURNAL_UNUSABLE` for an error of the engine, or a damaged value; None for all others."""


def translate_errors(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """Wrap a method so that the errors of the object's database (`_db`) become `ErrorCode.JOURNAL_UNUSABLE`."""

    @functools.wraps(method)
    def translating_method(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            if (translated := self._db.translate(error)) is None:
                raise
            raise translated from error

    return translating_method


def placeholders(values: Collection[object]) -> str:
    """Return one SQL placeholder for each value, separated by commas."""
    return ", ".join("?" * len(values))
