"""escrowctl broken on purpose for one test, in this process: the harnesses of replies must notice it.

Each takes the test's monkeypatch and what to call when the broken part runs.
"""

import json
import zlib
from collections.abc import Callable
from typing import Any

import internals
import pytest
import rich.text
from rich.markup import render

from escrowctl.client import connection, http
from escrowctl.client.http import Evidence, Fault
from escrowctl.client.transport import OriginTransport
from escrowctl.contract.json import Document, Reply, read_reply
from escrowctl.errors import Outcome
from escrowctl.output import console, errors, plain, terminal
from escrowctl.writes import outcome, writer
from escrowctl.writes.outcome import Judgement

Reached = Callable[[], None]
Variant = Callable[[pytest.MonkeyPatch, Reached], None]


def judges_by_exception(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Take a broken connection for one that never was."""
    judge = outcome.judge_write

    def hasty(operation: Any, happened: Any, **more: Any) -> Judgement:
        if happened.fault is Fault.BROKEN_OFF:
            reached()
            happened = happened._replace(sent=False)
        return judge(operation, happened, **more)

    monkeypatch.setattr(writer, "judge_write", hasty)


def judges_by_status_alone(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Take every 2xx for a success, with any body."""

    def credulous(_operation: Any, answer: Any, _sent: Any, record: Any) -> Judgement:
        reached()
        return Judgement(Outcome.DONE, str(answer.status))

    monkeypatch.setattr(internals.JUDGE_SUCCESS, credulous)


def takes_errors_for_refusals(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Take a 5xx for a refusal."""
    reached()
    monkeypatch.setattr(internals.REFUSED_OTHERWISE, frozenset(range(400, 600)))


def sends_again_after_a_reset(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Retry a write because its connection broke."""

    def eager(happened: Any, **_allowed: Any) -> bool:
        reached()
        return happened.fault is Fault.BROKEN_OFF

    monkeypatch.setattr(writer, "may_write_again", eager)


def follows_redirects(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Follow a redirect with key and body."""
    send = connection.Connection.exchange

    def obedient(self: Any, request: Any, **keywords: Any) -> Any:
        first = send(self, request, **keywords)
        place = first.answer.find_header("location") if first.answer else None
        if place is None:
            return first
        reached()
        return send(self, request._replace(url=place), **keywords)

    monkeypatch.setattr(connection.Connection, "exchange", obedient)


def lets_decoding_raise(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Let a library's own exception out of the decoding."""

    def careless(chunks: Any, **_bounds: Any) -> bytes:
        reached()
        return zlib.decompress(b"".join(chunks))

    monkeypatch.setattr(connection, "read_body", careless)


def counts_the_tunnel_as_sent(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Take the request to a proxy for the request itself."""
    handle = OriginTransport.handle_request

    def hasty(self: Any, request: Any) -> Any:
        reached()
        request.extensions["evidence"].mark_sent()
        return handle(self, request)

    monkeypatch.setattr(OriginTransport, "handle_request", hasty)


def forgets_the_call(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Call the sandbox without noting it."""

    def careless(self: Any, request: Any) -> Any:
        reached()
        request.extensions["evidence"] = Evidence()
        return handle(self, request)

    handle = connection.InProcessTransport.handle_request
    monkeypatch.setattr(connection.InProcessTransport, "handle_request", careless)


def has_no_limit(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Inflate everything, without a limit."""

    collect = internals.read(internals.COLLECT)

    def greedy(kept: bytearray, chunks: Any, limit: int, encoding: str) -> Any:
        if not encoding:
            return collect(kept, chunks, limit, encoding)
        reached()
        kept += zlib.decompress(b"".join(chunks), 47)
        return None

    monkeypatch.setattr(internals.COLLECT, greedy)


def reads_carelessly(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Read JSON as the standard library does."""

    def careless(body: bytes) -> Reply:
        reached()
        return Document(json.loads(body))

    monkeypatch.setattr(http, "read_reply", careless)


def tells_less_than_was_said(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Leave the amount out of a record."""

    def forgetful(body: bytes) -> Reply:
        reply = read_reply(body)
        if not isinstance(reply, Document) or not isinstance(reply.value, dict):
            return reply
        reached()
        return Document({name: value for name, value in reply.value.items() if name != "amount"})

    monkeypatch.setattr(http, "read_reply", forgetful)


def has_no_deadline(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Bound each read, and not the whole."""

    def patient(self: Any, _expired: Any) -> float:
        reached()
        return 5.0

    monkeypatch.setattr(internals.SECONDS_LEFT, patient)


def makes_nothing_safe(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Print a service's text as it came."""

    def as_it_is(text: str) -> str:
        reached()
        return text

    for module in (console, terminal, errors, plain):
        monkeypatch.setattr(module, "safe", as_it_is)


def reads_markup(monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    """Take a service's text for rich's markup."""

    class Marked(rich.text.Text):
        def __init__(self, text: str = "", **style: Any) -> None:
            reached()
            super().__init__(render(text).plain, **style)

    monkeypatch.setattr("rich.text.Text", Marked)
