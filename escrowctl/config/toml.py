"""Reading TOML within bounds."""

import tomllib
from typing import Any

_MOST_LEVELS = 32


def load_toml(text: str) -> dict[str, Any]:
    """Return a text's tables.

    Raises ValueError, with the reason, for a text that is not TOML, for arrays and tables in each other on more than
    32 levels, and for numbers that are too long for Python.
    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"more than {_MOST_LEVELS} levels of arrays and tables") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number with too many digits") from None
    level: list[Any] = [tables]
    for _ in range(_MOST_LEVELS + 1):
        parts = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in parts if isinstance(part, dict | list)]
    if level:
        raise ValueError(f"more than {_MOST_LEVELS} levels of arrays and tables")
    return tables
