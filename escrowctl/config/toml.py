"""Reading TOML within bounds."""

import tomllib
from typing import Any

_MOST_LEVELS = 32
_BEYOND = f"more than {_MOST_LEVELS} levels of arrays and tables, or a number that is too long"


def load_toml(text: str) -> dict[str, Any]:
    """Return a text's tables; raises ValueError, with the reason, for a text that is not TOML or beyond the bounds."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError):
        raise ValueError(_BEYOND) from None
    level: list[Any] = [tables]
    for _ in range(_MOST_LEVELS + 1):
        parts = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in parts if isinstance(part, dict | list)]
    if level:
        raise ValueError(_BEYOND)
    return tables
