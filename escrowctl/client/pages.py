"""Read a list page by page, until a reply names no new page."""

from collections.abc import Iterator
from typing import NamedTuple

from escrowctl.client.reader import Reader
from escrowctl.contract.operations import Operation
from escrowctl.contract.pages import find_next_page
from escrowctl.contract.record import Record


class Page(NamedTuple):
    """One page of a list, without the items of earlier pages.

    `has_more`: the service reports more items. `has_readable_next`: the reply names a page that was not read yet.
    """

    items: list[Record]
    has_more: bool
    has_readable_next: bool


def read_pages(reader: Reader, operation: Operation, *, for_write: bool = False) -> Iterator[Page]:
    """Yield the pages of a list. A page is read when the caller asks for it. Raises EscrowctlError if a read fails.

    `for_write`: a write depends on the list, so a cached reply is an error. A link to an earlier page ends the
    list.
    """
    query, asked, known = "", {""}, set[str]()
    while True:
        found = reader.read_list(operation, query=query, for_write=for_write)
        has_more, following = find_next_page(found.document, found.items[-1].known.id if found.items else None)
        has_readable_next = following is not None and following not in asked
        yield Page([item for item in found.items if item.known.id not in known], has_more, has_readable_next)
        if not has_readable_next or following is None:
            return
        known |= {item.known.id for item in found.items if item.known.id is not None}
        asked.add(following)
        query = following
