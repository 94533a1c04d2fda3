"""Mutated replies read by everything that reads replies, and judged by a reader in this file.

`python -m faults.reply_fuzz SEED COUNT` runs so many in a separate process and prints the results of
them. The bytes come in where a connection is opened, in pieces: h11, our transport, the decoding, the
strict reader, the judgement and the views are all the real ones; only the kernel's socket is not.
"""

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NoReturn

import httpcore
import internals
from conftest import KEY

from escrowctl.client.connection import Connection
from escrowctl.client.http import Evidence, Exchange, Request
from escrowctl.client.reader import Reader
from escrowctl.client.retry import Retry
from escrowctl.client.transport import OriginTransport
from escrowctl.config.origin import parse_base_url
from escrowctl.config.service import Service
from escrowctl.contract.json import encode
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.contract.record import make_record
from escrowctl.contract.redaction import Secret
from escrowctl.errors import EscrowctlError, Outcome
from escrowctl.output import plain, terminal
from escrowctl.output.view import Listing, View
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes import outcome
from faults.mutated_replies import LIMIT, reply_of

DONE_STATUSES = {200, 201, 202, 203, 204}
REFUSED_STATUSES = {301, 307, 308, *range(400, 408), *range(409, 418), 421, 422, 424, 425, 428, 429, 431, 451, 501}
"""By hand: only these statuses prove that nothing was applied; 407 and 416 are not judged."""

WRITES = (CREATE_TRANSACTION, RELEASE_TRANSACTION, CREATE_WEBHOOK, UPDATE_TRANSACTION)
READS = (GET_TRANSACTION, GET_USER, LIST_TRANSACTIONS, LIST_WEBHOOKS)
NOW = datetime(2026, 11, 21, 4, tzinfo=UTC)


class UnsoundError(AssertionError):
    """A reply was understood as something that it does not contain."""


class PlayedStream(httpcore.NetworkStream):
    """Takes what is sent, and gives the reply in pieces, then an end or a break."""

    def __init__(self, pieces: list[bytes], *, breaks: bool) -> None:
        self._pieces, self._breaks = pieces, breaks

    def read(self, _max_bytes: int, _timeout: float | None = None) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        if self._breaks:
            raise httpcore.ReadError("Connection reset by peer")
        return b""

    def write(self, _buffer: bytes, _timeout: float | None = None) -> None:
        """All is taken."""

    def close(self) -> None:
        self._pieces = []


SERVICE = Service(
    name="fuzz",
    origin=parse_base_url("http://127.0.0.1:9", source="fuzz"),
    identity="fuzz",
    key=Secret(KEY),
    url_source="fuzz",
    key_source="fuzz",
    live=False,
)
AROUND = Runtime(sleep=lambda _seconds: None, new_uuid=lambda: "a-uuid", now=lambda: NOW)
RETRY = Retry(AROUND, Signals(), lambda _text: None)
"""Shared by all: its budget is soon spent, and each reply is read once."""


def open_wire_for(data: bytes, chance: random.Random) -> Connection:
    """Return a wire whose every connection answers with these bytes, cut into pieces by chance."""
    size = chance.choice((1, 7, 100, 65536, 65536)) if len(data) < 5_000 else 65536
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    transport = OriginTransport(context=None, proxy=None, monotonic=time.monotonic)
    breaks = chance.random() < 0.1
    internals.replace_sockets(transport, lambda *_where: PlayedStream([*pieces], breaks=breaks))
    return Connection(transport, Secret(KEY))


def examine(seed: int, number: int) -> str:
    """Let an operation drawn for it read one reply; return its class, raise UnsoundError where it is wrong."""
    data, chance = reply_of(seed, number)
    wire = open_wire_for(data, chance)
    try:
        if chance.random() < 0.5:
            return examine_write(wire, data, chance.choice(WRITES))
        return examine_read(wire, chance.choice(READS), to_terminal=chance.random() < 0.05)
    finally:
        wire.close()


def examine_write(wire: Connection, data: bytes, operation: Operation) -> str:
    headers = (("Content-Type", "application/json"),)
    request = Request(operation.method, "http://127.0.0.1:9/api/v1/x", headers, b'{"amount":100}')
    exchange = wire.exchange(request, evidence=Evidence(), seconds=60, limit=LIMIT)
    judged = outcome.judge_write(operation, exchange, sent=outcome.SentRequest())
    _check_judgement(operation, exchange, judged.outcome, data)
    if judged.record is not None and exchange.answer is not None:
        if strictly(encode(judged.record.document).encode()) != strictly(exchange.answer.body):
            raise UnsoundError("it is shown otherwise than it came")
        show(judged.record.value, to_terminal=False)
    if KEY in judged.detail:
        raise UnsoundError("the key was repeated")
    return judged.outcome.value


def _check_judgement(operation: Operation, exchange: Exchange, outcome: Outcome, data: bytes) -> None:
    """Compare the outcome with what the bytes can mean."""
    statuses = {int(found) for found in re.findall(rb"HTTP/\d\.\d +(\d{3})", data)}
    if outcome is Outcome.NOT_SENT:
        raise UnsoundError("it was sent, and is reported as not sent")
    if outcome is Outcome.REFUSED and not statuses & REFUSED_STATUSES:
        raise UnsoundError(f"refused, by {statuses}")
    if outcome is not Outcome.DONE:
        return
    if not statuses & DONE_STATUSES or exchange.answer is None:
        raise UnsoundError(f"done, by {statuses}")
    body = exchange.answer.body
    if operation is CREATE_TRANSACTION and not (has_id(strictly(body)) or names_place(exchange)):
        raise UnsoundError(f"done, by {body[:80]!r}")
    if body.strip() and strictly(body) is _NOTHING:
        raise UnsoundError(f"done, by {body[:80]!r}")


ID_NAMES = {"id", "uuid", "guid", "uid", "_id"} | {
    stem + ending for stem in ("transaction", "escrow", "tx") for ending in ("id", "_id")
}


def has_id(value: Any) -> bool:
    """Whether a record, or one directly in it, has anything under a name of an id (by hand)."""
    holders = [value, *value.values()] if isinstance(value, dict) else []
    return any(
        name.lower() in ID_NAMES and isinstance(inner, str) and inner
        for holder in holders
        if isinstance(holder, dict)
        for name, inner in holder.items()
    )


def names_place(exchange: Exchange) -> bool:
    assert exchange.answer is not None
    return exchange.answer.status == 201 and "/transactions/" in (exchange.answer.find_header("location") or "")


def examine_read(wire: Connection, operation: Operation, *, to_terminal: bool) -> str:
    reader = Reader(SERVICE, wire, RETRY, AROUND, Signals())
    try:
        if operation in (LIST_TRANSACTIONS, LIST_WEBHOOKS):
            found = reader.read_list(operation)
            document = found.document
            views = tuple(view_of(item.value) for item in found.items)
            columns = ("id", "status", "amount", "currency", "created")
            plain.render_rows(view.row(columns) for view in views)
            if to_terminal and len(views) < 300:
                terminal.render_listing(Listing(columns, views), now=NOW, width=100, color=False)
        else:
            document = reader.read(operation, "tx_1").document
            show(document, to_terminal=to_terminal)
    except EscrowctlError as error:
        if error.code.exit_code not in range(4, 12) or KEY in error.message:
            raise UnsoundError(f"a read ended with {error.code.exit_code}: {error.message}") from error
        return error.code.exit_code.name.lower()
    if strictly(encode(document).encode()) is _NOTHING:
        raise UnsoundError("it cannot be printed")
    return "read"


def view_of(value: Any) -> View:
    located = make_record(value, pointers=SERVICE.pointers, noun="transaction").known
    named = {"id": located.id, "status": located.status, "amount": located.amount, "currency": located.currency}
    return View(value, located.id, value, named={**named, "created": located.created})


def show(value: Any, *, to_terminal: bool) -> None:
    view = view_of(value)
    plain.render_rows(view.fields)
    if to_terminal and len(view.fields) < 300:
        terminal.render_fields(view, now=NOW, width=100, color=False)


# A strict reader that shares nothing with ours

_NOTHING = object()


def strictly(body: bytes) -> Any:
    """Return what a body holds by the rules of RFC 8259 and I-JSON, or `_NOTHING`."""

    def refuse(_token: str) -> NoReturn:
        raise ValueError

    def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        listed = list(pairs)
        if len({key for key, _ in listed}) != len(listed):
            raise ValueError
        return dict(listed)

    try:
        text = body.decode("utf-8", "strict")
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=unique, parse_int=str, parse_float=str)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return _NOTHING
    return value


def run(seed: int, count: int, start: int = 0) -> Counter[str]:
    """Examine so many replies; raises what was wrong with the first wrong one, with its number."""
    classes: Counter[str] = Counter()
    for number in range(start, start + count):
        try:
            classes[examine(seed, number)] += 1
        except Exception as error:
            error.add_note(f"reply {number} of ESCROWCTL_TEST_SEED={seed}: {reply_of(seed, number)[0][:400]!r}")
            raise
    return classes


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    start = time.monotonic()
    classes = run(seed, count)
    document = {"classes": classes, "seconds": round(time.monotonic() - start, 1)}
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
