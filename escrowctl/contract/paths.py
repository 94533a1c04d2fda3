"""Check paths that are typed for the `api` command: their characters, and whether they may call a known write.

A service may take `/Transactions/x/release.json` for the release of x. So a path counts as a possible call of a
known write if a part of the path begins with the noun of that write, such as `transaction`.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote

from escrowctl.contract.operations import OPERATIONS, READING_METHODS, WRITES, Operation, make_raw_operation, match_path
from escrowctl.errors import bad_value

_SAFE_SEGMENT = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", re.ASCII)
_SAFE_QUERY = re.compile(r"[A-Za-z0-9._~=&%+,:@/-]+", re.ASCII)


class Call(NamedTuple):
    """A call typed by hand: its operation, the id in its path (None: no id is known), and its query."""

    operation: Operation
    resource_id: str | None = None
    query: str = ""


def parse_call(method: str, typed_path: str, *, api_prefix: str) -> Call:
    """Return the call that a typed method and path mean. The path may begin with the API prefix (`api_prefix`) or not.

    Raises EscrowctlError `BAD_VALUE` for an unsafe path or query, and for a query in a write.
    """
    path, mark, query = typed_path.partition("?")
    if mark and method not in READING_METHODS:
        raise bad_value(f'"{typed_path}" has a query, which a write cannot have: put the query values into --data.')
    if mark and not _SAFE_QUERY.fullmatch(query):
        raise bad_value(f'the query "{query}" is empty or has characters that need percent-encoding.')
    advice = "write a path such as /transactions/tx_1"
    if not path.startswith("/"):
        raise bad_value(f'"{typed_path}" is not a path of this service: {advice}.')
    if path.startswith(f"{api_prefix}/"):
        path = path.removeprefix(api_prefix)
    if not all(_SAFE_SEGMENT.fullmatch(segment) for segment in path[1:].split("/")):
        raise bad_value(f'"{typed_path}" has a part that is empty, starts with "." or has unsafe characters: {advice}.')
    for operation in OPERATIONS:
        found = match_path(operation.path, path)
        if found and method == operation.method and not operation.is_write:
            return Call(operation, found.groupdict().get("id"), query)
    return Call(make_raw_operation(method, path), query=query)


def find_known_write_noun(path: str) -> str | None:
    """Return the noun of the known writes that a complete path may call, such as `transaction`; else None."""
    nouns = {operation.noun for operation in WRITES}
    segments = unquote(path).casefold().split("/")
    return next((noun for noun in sorted(nouns) if any(segment.startswith(noun) for segment in segments)), None)
