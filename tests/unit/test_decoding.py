"""Compressed reply bodies: within bounds, complete, or a typed defect."""

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from escrowctl.client.connection import read_body
from escrowctl.contract.json import Defect

BODY = b'{"id":"tx_1","status":"held"}'
SQUEEZED = gzip.compress(BODY, mtime=0)
LIMIT = 1000
BOMB_BYTES = 200 * 1024 * 1024


def in_chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def defect_of(data: bytes, encoding: str, *, limit: int = LIMIT, size: int = 7) -> tuple[Defect, bytes]:
    kept, defect = read_body(in_chunks(data, size), limit=limit, encoding=encoding)
    assert defect is not None
    return defect, kept


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", BODY),
        ("identity", BODY),
        ("gzip", SQUEEZED),
        ("x-gzip", SQUEEZED),
        (" GZIP ", SQUEEZED),
        ("deflate", zlib.compress(BODY)),
    ],
    ids=["empty", "identity", "gzip", "x-gzip", "odd spelling", "deflate"],
)
def test_body_is_complete_in_pieces_of_any_size(encoding: str, data: bytes, size: int) -> None:
    assert read_body(in_chunks(data, size), limit=LIMIT, encoding=encoding) == (BODY, None)


@pytest.mark.parametrize("cut", [1, 8, 12, 20])
@pytest.mark.parametrize(
    ("encoding", "data"), [("gzip", SQUEEZED), ("deflate", zlib.compress(BODY))], ids=["gzip", "deflate"]
)
def test_a_compressed_body_without_its_end_mark_was_cut_short(encoding: str, data: bytes, cut: int) -> None:
    defect, kept = defect_of(data[:-cut], encoding)

    assert defect is Defect.CUT_SHORT
    assert BODY.startswith(kept)


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, identity", "aws-chunked"])
def test_unsupported_content_encoding_is_reported(encoding: str) -> None:
    assert defect_of(BODY, encoding) == (Defect.BAD_ENCODING, b"")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_body_that_does_not_match_its_encoding_is_reported(encoding: str) -> None:
    assert defect_of(BODY, encoding)[0] is Defect.BAD_ENCODING


def test_a_gzip_whose_checksum_is_wrong_is_named() -> None:
    data = bytearray(SQUEEZED)
    data[-8] ^= 1

    assert defect_of(bytes(data), "gzip")[0] is Defect.BAD_ENCODING


@pytest.mark.parametrize(
    ("encoding", "squeeze"),
    [("", bytes), ("gzip", gzip.compress), ("deflate", zlib.compress)],
    ids=["plain", "gzip", "deflate"],
)
def test_the_limit_is_of_the_decoded_body_and_exact(encoding: str, squeeze: type[bytes]) -> None:
    whole, over = squeeze(b"x" * LIMIT), squeeze(b"x" * (LIMIT + 1))

    assert read_body(in_chunks(whole, 7), limit=LIMIT, encoding=encoding) == (b"x" * LIMIT, None)
    assert defect_of(over, encoding) == (Defect.OVER_LIMIT, b"x" * min(LIMIT, 16 * 1024))


def test_bytes_after_the_end_of_a_gzip_body_are_refused() -> None:
    """A second member (RFC 1952 section 2.2) belongs to the body: a body read in part is not read."""
    assert defect_of(gzip.compress(b'{"id":') + gzip.compress(b'"tx_1"}'), "gzip")[0] is Defect.BAD_ENCODING


@pytest.mark.slow
def test_a_bomb_is_given_up_within_bounded_memory() -> None:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1024 * 1024)
    bomb = b"".join(squeezer.compress(zeros) for _ in range(BOMB_BYTES // len(zeros))) + squeezer.flush()
    limit = 1024 * 1024
    tracemalloc.start()
    try:
        defect, kept = defect_of(bomb, "gzip", limit=limit, size=len(bomb))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # Of a body that is given up, only how it began is kept.
    assert (defect, len(kept)) == (Defect.OVER_LIMIT, 16 * 1024)
    assert peak < 8 * limit
