"""A JSON number that remembers how it was written."""

from decimal import Decimal
from typing import TypeAlias

MAX_NUMBER_CHARS = 128
"""Longest number token read from a reply; far beyond any amount, far below what makes Decimal slow."""


class Number(Decimal):
    """A JSON number token: compares as a Decimal, prints exactly as it stood on the wire.

    `Number("100.00")` equals `Decimal(100)` and prints `100.00`; no float is ever made of it.
    """

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> "Number":
        """Keep the token beside its value; raises `decimal.InvalidOperation` beyond Decimal's range."""
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Number({self.text!r})"

    def __reduce__(self) -> tuple[type["Number"], tuple[str]]:
        return (Number, (self.text,))


JsonValue: TypeAlias = "bool | str | Number | list[JsonValue] | dict[str, JsonValue] | None"
"""What a reply may hold once read: `bool` for true and false, `Number` for every number."""
