"""Paths typed by hand: an allow-list of their characters, and which operation a path really is.

A service may take `/Transactions/x/release.json` for the release of x, and have another
prefix than the profile says. What ends like one of the contract's writes is treated as one, and what
lies beneath a transaction and has a segment that starts with `release` as its release (and so for
each once-only write), so that no spelling gets round its guards. Nothing is guessed from a body.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.operations import OPERATIONS, READING_METHODS, Access, Operation, make_foreign
from escrowctl.errors import bad_value

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SEGMENT = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", re.ASCII)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})", re.ASCII)
_UNESCAPED = re.compile(r"[A-Za-z0-9_~-]", re.ASCII)
_QUERY = re.compile(r"[A-Za-z0-9._~=&%+,:@/-]+", re.ASCII)
_MAX_CHARS = 4000
_ONCE_ONLY_METHODS = frozenset({"POST", "PUT", "PATCH"})
"""Methods by which a service may take a once-only write: a guard too many sends nothing twice."""


class Call(NamedTuple):
    """A call typed by hand: the operation it is, the id in its path (None: none is known), and its query."""

    operation: Operation
    resource_id: str | None = None
    query: str = ""


def parse_call(method: str, text: str, *, base: str = "", prefix: str) -> Call:
    """Return what METHOD PATH calls; PATH is relative to `prefix`, or begins with it.

    `base` is the path of the base URL. Raises EscrowctlError (exit 2) for another method, a path that
    is too long, could lead elsewhere or is only a part of one, and a query on a write.
    """
    if len(text) > _MAX_CHARS:
        raise bad_value(f"the path has {len(text)} characters: the limit is {_MAX_CHARS}.")
    verb = method.upper()
    if verb not in METHODS:
        raise bad_value(f'"{method}" is not one of {", ".join(METHODS)}.')
    path, mark, query = text.partition("?")
    path = _ESCAPE.sub(_unescape, path)
    if mark and (verb not in READING_METHODS or not _QUERY.fullmatch(query)):
        raise bad_value(
            f'the query "{query}" is empty or has characters that need percent-encoding.'
            if verb in READING_METHODS
            else f'"{text}" has a query, which a write cannot have: put the query values into --data.'
        )
    segments = _segments(text, path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path)
    call = _recognise(verb, segments)
    _require_complete(text, call, _recognise(verb, [*_parts(base), *_parts(prefix), *segments]), verb)
    return call._replace(query=query)


def _unescape(escape: re.Match[str]) -> str:
    """Return the letter, digit or mark that needed no percent-encoding (RFC 3986 section 2.3), or else the escape.

    A dot stays encoded, and is refused as such: it could lead elsewhere.
    """
    char = chr(int(escape[1], 16))
    return char if _UNESCAPED.fullmatch(char) else escape[0]


def _require_complete(text: str, call: Call, whole: Call, method: str) -> None:
    """Refuse (exit 2) a write that becomes another one behind the profile's prefix: the wrong guards would apply."""
    same = (call.operation.name, call.resource_id) == (whole.operation.name, whole.resource_id)
    if method not in READING_METHODS and not same:
        raise bad_value(
            f'"{text}" is only the end of the path: the base URL or api_prefix contains the first part. '
            "Move the first part from there into the path."
        )


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _segments(text: str, path: str) -> list[str]:
    hint = "write one such as /transactions/tx_1"
    if not path.startswith("/"):
        raise bad_value(f'"{text}" is not a path of this service: {hint}.')
    segments = path[1:].split("/")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise bad_value(f'"{text}" has a part that is empty, starts with "." or has unsafe characters: {hint}.')
    return segments


def _recognise(method: str, segments: list[str]) -> Call:
    for operation in OPERATIONS:
        position = _find_id(segments, operation) if operation.once_only and method in _ONCE_ONLY_METHODS else None
        if position is not None:
            path = "/" + "/".join([*segments[:position], "{id}", *segments[position + 1 :]])
            return Call(operation._replace(method=method, path=path), parse_id(segments[position]))
    for operation in OPERATIONS:
        resource_id = _fits(operation, method, segments)
        if resource_id is not None:
            named = operation.path.count("{id}") == 1
            spelled = _spelled(segments, operation) if named else "/" + "/".join(segments)
            return Call(operation._replace(path=spelled), parse_id(resource_id, noun=operation.noun) if named else None)
    foreign = make_foreign(method, "/" + "/".join(segments))
    # A write beneath a transaction is about that one.
    beneath = next((after for segment, after in pairwise(segments) if _bare(segment) == "transactions"), None)
    return Call(foreign, parse_id(beneath) if beneath is not None and foreign.access is Access.WRITE else None)


def _find_id(segments: list[str], operation: Operation) -> int | None:
    """Return where the id of the transaction is that a path may do a once-only write to, or None.

    It lies beneath that transaction, with a segment that starts with `release`: `/transactions/ID/release-funds`.
    """
    action, beneath = operation.path.rpartition("/")[2], False
    for position in reversed(range(1, len(segments))):
        if beneath and _bare(segments[position - 1]) == "transactions":
            return position
        beneath = beneath or segments[position].casefold().startswith(action)
    return None


def _fits(operation: Operation, method: str, segments: list[str]) -> str | None:
    """Return the id where the path is this operation's ("" where it has none), else None."""
    parts = operation.path[1:].split("/")
    if len(parts) > len(segments) or method != operation.method:
        return None
    pairs = list(zip(parts, segments[-len(parts) :], strict=True))
    if any(part != "{id}" and _bare(segment) != part for part, segment in pairs):
        return None
    return next((segment for part, segment in pairs if part == "{id}"), "")


def _spelled(segments: list[str], operation: Operation) -> str:
    parts = operation.path[1:].split("/")
    tail = [part if part == "{id}" else typed for part, typed in zip(parts, segments[-len(parts) :], strict=True)]
    return "/" + "/".join([*segments[: -len(parts)], *tail])


def _bare(segment: str) -> str:
    """Return a segment as a service may read it: case-blind, without a suffix that names a format."""
    return segment.partition(".")[0].casefold()
