"""Find out from a reply whether a list has a next page, and how to ask for that page.

INTERFACE.md does not show how lists are paged. So only three usual forms are followed, and only with GET: the URL
of the next page, a cursor, or "has more" with the id of the last item.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote

from escrowctl.contract.json import JsonValue, fold_name

_ENVELOPE_NAMES = frozenset({"data", "links", "meta", "page", "pageinfo", "paging", "pagination", "result"})
_SAFE_QUERY = r"[A-Za-z0-9._~=&%+,:@/-]{1,2000}"


def find_next_page(document: JsonValue, last_id: str | None) -> tuple[bool, str | None]:
    """Return whether a list has a next page, and the query that asks for it (None: the query is not known).

    `last_id` is the id of the last item in the reply.
    """
    fields = dict(_list_page_fields(document))
    has_more = fields.get("hasmore", fields.get("hasnextpage"))
    if has_more is False:
        return False, None
    url = fields.get("next")
    if isinstance(url, dict):
        url = url.get("href")
    # Host and path are ignored: no reply may redirect a read.
    _, _, found = url.partition("?") if isinstance(url, str) else ("", "", "")
    query = found if re.fullmatch(_SAFE_QUERY, found) else None
    cursor = fields.get("nextcursor")
    if query is None and isinstance(cursor, str) and cursor:
        query = f"cursor={quote(cursor, safe='')}"
    if query is None and has_more is True and last_id is not None:
        query = f"after={quote(last_id, safe='')}"
    # A link or cursor that cannot be followed still says that there is more.
    return has_more is True or bool(url) or bool(cursor), query


def _list_page_fields(document: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of a page and of its envelopes, by folded name. Outer fields come last, and override."""
    if isinstance(document, dict):
        named = {fold_name(name): value for name, value in document.items()}
        for name in sorted(named.keys() & _ENVELOPE_NAMES):
            yield from _list_page_fields(named[name])
        yield from named.items()
