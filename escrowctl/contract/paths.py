"""Check paths that are typed for `api`: their characters, and whether they may call a known write.

A service may take `/Transactions/x/release.json` for the release of x. So a path may call a known write if a part
of it begins with that write's noun, such as `transaction`.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote

from escrowctl.contract.operations import OPERATIONS, READING_METHODS, Operation, make_raw_operation
from escrowctl.errors import bad_value

_SEGMENT = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", re.ASCII)
_QUERY = re.compile(r"[A-Za-z0-9._~=&%+,:@/-]+", re.ASCII)


class Call(NamedTuple):
    """A call typed by hand: its operation, the id in its path (None: none is known), and its query."""

    operation: Operation
    resource_id: str | None = None
    query: str = ""


def parse_call(method: str, text: str, *, prefix: str) -> Call:
    """Return the call that a typed method and path mean. The path is relative to `prefix`, or begins with it.

    Raises `ErrorCode.BAD_VALUE` for an unsafe path or query, and for a query on a write.
    """
    path, mark, query = text.partition("?")
    if mark and (method not in READING_METHODS or not _QUERY.fullmatch(query)):
        raise bad_value(
            f'the query "{query}" is empty or has characters that need percent-encoding.'
            if method in READING_METHODS
            else f'"{text}" has a query, which a write cannot have: put the query values into --data.'
        )
    advice = "write one such as /transactions/tx_1"
    if not path.startswith("/"):
        raise bad_value(f'"{text}" is not a path of this service: {advice}.')
    if path.startswith(f"{prefix}/"):
        path = path.removeprefix(prefix)
    if not all(_SEGMENT.fullmatch(segment) for segment in path[1:].split("/")):
        raise bad_value(f'"{text}" has a part that is empty, starts with "." or has unsafe characters: {advice}.')
    for operation in OPERATIONS:
        found = re.fullmatch(operation.path.replace("{id}", "([^/]+)"), path)
        if found and method == operation.method and not operation.is_write:
            return Call(operation, found[1] if found.lastindex else None, query)
    return Call(make_raw_operation(method, path), query=query)


def find_known_write(path: str) -> str | None:
    """Return the noun of the known writes that a complete path may call, such as `transaction`; None if none."""
    nouns = {operation.noun for operation in OPERATIONS if operation.is_write}
    segments = unquote(path).casefold().split("/")
    return next((noun for noun in sorted(nouns) if any(segment.startswith(noun) for segment in segments)), None)
