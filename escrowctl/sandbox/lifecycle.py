"""Which state may follow which, as data.

interface.md section 3: states and transitions are not shown. These words and this table are the
sandbox's own choice:

    create -> held -> release -> released
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a transaction's money is: in escrow, or with the payee for good."""

    HELD = "held"
    RELEASED = "released"


class Move(StrEnum):
    """What can be done to a transaction; each moves its whole amount once."""

    CREATE = "create"
    RELEASE = "release"


FIRST_STATE = State.HELD

TRANSITIONS: Mapping[tuple[State, Move], State] = MappingProxyType({(State.HELD, Move.RELEASE): State.RELEASED})
"""(state, move) -> the state after it; what is not listed is refused."""


def steps(move: Move) -> Iterator[tuple[State, State]]:
    """Every (state before, state after) that a move allows."""
    return ((before, after) for (before, via), after in TRANSITIONS.items() if via is move)
