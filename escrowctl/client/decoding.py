"""Reply bodies within bounds: collected, and inflated where a server compresses unasked."""

import zlib
from collections.abc import Iterable

from escrowctl.contract.json import Defect

_KEPT = 16 * 1024
"""Bytes. A body may be as large as the list limit; what is shown of a broken one is its first line."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class BodyError(Exception):
    """The body cannot be used; `kept` is how it began, for an excerpt."""

    def __init__(self, defect: Defect, kept: bytes) -> None:
        super().__init__(defect.value)
        self.defect = defect
        self.kept = kept


def collect(chunks: Iterable[bytes], *, limit: int, encoding: str | None) -> bytes:
    """Return the decoded body of at most `limit` bytes; raises BodyError.

    Identity is asked for; a single gzip or deflate layer is undone in bounded steps all the same,
    and its end mark is checked, because a cut stream inflates without an error.
    """
    match (encoding or "identity").strip().lower():
        case "identity" | "":
            return _collect_plain(chunks, limit)
        case "gzip" | "x-gzip":
            return _collect_inflated(chunks, limit, zlib.decompressobj(_GZIP_WINDOW))
        case "deflate":
            return _collect_inflated(chunks, limit, zlib.decompressobj())
        case _:
            raise BodyError(Defect.BAD_ENCODING, b"")


def _collect_plain(chunks: Iterable[bytes], limit: int) -> bytes:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > limit:
            raise BodyError(Defect.OVER_LIMIT, bytes(kept[: min(limit, _KEPT)]))
    return bytes(kept)


def _collect_inflated(chunks: Iterable[bytes], limit: int, inflater: "zlib._Decompress") -> bytes:
    kept = bytearray()
    for chunk in chunks:
        if inflater.eof and chunk:
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT]))
        try:
            kept += inflater.decompress(chunk, limit + 1 - len(kept))
        except zlib.error:
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT])) from None
        if len(kept) > limit:
            raise BodyError(Defect.OVER_LIMIT, bytes(kept[: min(limit, _KEPT)]))
        if inflater.unused_data:
            # A second member (RFC 1952 section 2.2), or anything else: what is read in part is not read.
            raise BodyError(Defect.BAD_ENCODING, bytes(kept[:_KEPT]))
    if not inflater.eof:
        raise BodyError(Defect.CUT_SHORT, bytes(kept[:_KEPT]))
    return bytes(kept)
