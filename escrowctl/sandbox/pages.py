"""Lists in pages: the query parameters, and the envelope of the answer.

INTERFACE.md section 4 shows no query parameters, no pagination and no filters. The sandbox's own
choice, the same for every list: `limit` (1 to 100, 50 if not given) and `after` (an id: only older
records) in the query, and `{"data": [record, ...], "has_more": bool}`, newest first.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from escrowctl.sandbox.http import Call
from escrowctl.sandbox.json import JsonObject
from escrowctl.sandbox.problems import ProblemError, flawed, parameter_flaw

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
LIMIT = re.compile(r"[1-9][0-9]{0,2}")


class Page(NamedTuple):
    """The requested part of a list; `after` None means from the newest."""

    limit: int
    after: str | None

    @property
    def rows_to_read(self) -> int:
        """One more than the page shows: the extra row tells whether there are more."""
        return self.limit + 1

    def envelope(self, documents: Sequence[JsonObject]) -> JsonObject:
        """Put the records, up to `rows_to_read` of them, into the answer."""
        return {"data": documents[: self.limit], "has_more": len(documents) > self.limit}


def read_page(call: Call) -> Page:
    """Read the query of a list; 400 for an unknown or bad parameter. It does not look up `after`."""
    parameters = call.parameters("limit", "after")
    limit = parameters.get("limit", str(DEFAULT_LIMIT))
    if not LIMIT.fullmatch(limit) or int(limit) > MAX_LIMIT:
        raise flawed(parameter_flaw("limit", f"limit must be a whole number from 1 to {MAX_LIMIT}."))
    return Page(limit=int(limit), after=parameters.get("after"))


def no_such_start(noun: str, record_id: str) -> ProblemError:
    """A 400 for an `after` that names no record."""
    return flawed(parameter_flaw("after", f"after names no {noun}: {record_id!r}."))
