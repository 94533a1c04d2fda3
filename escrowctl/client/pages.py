"""Read a list page by page, as far as the replies name a next page."""

from collections.abc import Iterator
from typing import NamedTuple

from escrowctl.client.reader import Reader
from escrowctl.contract.operations import Operation
from escrowctl.contract.pages import find_next_page
from escrowctl.contract.record import Record


class Page(NamedTuple):
    """The items of one page that no earlier page had.

    `has_more`: the service reports more items. `has_readable_next`: the next page can be read.
    """

    items: list[Record]
    has_more: bool
    has_readable_next: bool


def read_pages(reader: Reader, operation: Operation, *, for_write: bool = False) -> Iterator[Page]:
    """Yield the pages of a list, each read when the caller takes it. Raises EscrowctlError if one cannot be read.

    `for_write`: a write depends on the list. A link back to an earlier page ends the list, because the service then
    ignores which page is asked for.
    """
    query, asked, known = "", {""}, set[str]()
    while True:
        found = reader.read_list(operation, query=query, for_write=for_write)
        last_id = found.items[-1].known.id if found.items else None
        has_more, following = find_next_page(found.document, last_id)
        leads_on = following is not None and following not in asked
        yield Page([item for item in found.items if item.known.id not in known], has_more, leads_on)
        if not leads_on or following is None:
            return
        known |= {item.known.id for item in found.items if item.known.id is not None}
        asked.add(following)
        query = following
