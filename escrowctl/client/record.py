"""What a service says of one thing or of several, located and in a few words."""

from typing import NamedTuple

from escrowctl.contract.json import JsonValue
from escrowctl.contract.money import Money
from escrowctl.contract.record import Located, Pointers, locate, unwrap


class Record(NamedTuple):
    """What a service says of one thing: the complete document, the record in it, and what was found there."""

    document: JsonValue
    value: JsonValue
    located: Located


class Records(NamedTuple):
    """A collection as a service lists it: the complete document, and the items found in it."""

    document: JsonValue
    items: list[Record]


def make_record(document: JsonValue, *, pointers: Pointers, noun: str) -> Record:
    """Take the record out of its envelope and find what escrowctl understands in it."""
    value = unwrap(document, noun=noun, pointers=pointers)
    return Record(document, value, locate(value, noun=noun, pointers=pointers, document=document))


def make_item(item: JsonValue, *, pointers: Pointers, noun: str) -> Record:
    """Find what escrowctl understands in an item of a list; items have no envelope."""
    return Record(item, item, locate(item, noun=noun, pointers=pointers))


def describe(located: Located | None) -> str:
    """Return a record in a few words: status, amount, currency."""
    if located is None:
        return "unreadable"
    return " ".join(part for part in (located.status, describe_money(located)) if part) or "nothing known"


def describe_money(located: Located | None) -> str:
    """Return `100 USD`, as far as it is known."""
    if located is None or located.amount is None:
        return ""
    return f"{located.amount} {located.currency or ''}".rstrip()


def money_of(located: Located | None) -> Money | None:
    """Return a record's money; None where its amount or its currency is not known."""
    if located is None or located.amount is None or located.currency is None:
        return None
    return Money(located.amount, located.currency)


def is_another(resource_id: str, located: Located) -> bool:
    """Whether a record, read under an id, says that it is another one."""
    return located.id is not None and located.id.casefold() != resource_id.casefold()
