"""A canary for a key: in no byte that is shown or kept, and at no place but its origin."""

import base64
import itertools
import json
import os
import random
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from conftest import Result, Run
from wire_server import Behave, Seen, hang_up, http_reply, reset, say_nothing, serving

KEYS = ("sk_canary_4f1c8a7f2b10d5b4", 'sk_canary_"q\\uoted/+=%41', "sk_canary_plus+slash/eq=")
RUNS = 500
RECORD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'

LINES = (
    ("tx", "create", "--amount", "100", "--currency", "USD"),
    ("tx", "get", "tx_1"),
    ("tx", "get", "tx_1", "tx_2"),
    ("tx", "release", "tx_1", "--yes"),
    ("tx", "list"),
    ("tx", "update", "tx_1", "--data", '{"n":1}', "--yes"),
    ("user", "get", "usr_1"),
    ("webhook", "create", "--url", "https://hooks.example.net/x"),
    ("webhook", "list"),
    ("api", "GET", "/users/usr_1"),
    ("api", "POST", "/notes", "--data", '{"n":1}', "--yes"),
    ("journal", "resolve", "j1"),
    ("journal", "show", "j1"),
    ("config", "list"),
    ("auth", "status", "--check"),
)
MANNERS = ((), ("--json",), ("--debug",), ("--debug", "--json"), ("-v",), ("-q",))


def spellings(key: str) -> tuple[bytes, ...]:
    """The key as it might stand anywhere: plain, in JSON, in a URL, in a repr, in base64."""
    texts = {key, json.dumps(key)[1:-1], quote(key, safe=""), quote(key), repr(key)[1:-1]}
    coded = base64.b64encode(key.encode()).rstrip(b"=")
    return (*(text.encode() for text in texts), coded)


# What a service may send back: the key, wherever it can put it


def _body(document: Callable[[str], object], status: str = "200 OK") -> Callable[[str], bytes]:
    return lambda key: http_reply(status, json.dumps(document(key)).encode())


def _escaped(key: str) -> bytes:
    spelled = "".join(f"\\u{ord(char):04x}" for char in key)
    return http_reply("400 No", f'{{"detail":"{spelled}"}}'.encode())


ECHOES: tuple[Callable[[str], bytes], ...] = (
    _body(lambda key: {"id": "tx_1", "status": key, "amount": 100, "currency": "USD"}),
    _body(lambda key: {"id": key, "status": "held"}),
    _body(lambda key: {"data": [{"id": "tx_1", "note": key}, {"id": key}]}),
    _body(lambda key: {key: {"id": "tx_1"}}),
    _body(lambda key: {"error": key}, "401 No"),
    _body(lambda key: {"detail": f"bad key {key}, again {key}"}, "403 No"),
    _body(lambda key: {"success": False, "message": key}),
    _body(lambda key: {"id": "wh_1", "secret": key, "url": f"https://x/{key}"}),
    _escaped,
    lambda key: http_reply("500 Oh", f"<html>Authorization: Bearer {key}</html>".encode(), content_type="text/html"),
    lambda key: http_reply("200 OK", key.encode(), content_type="text/plain"),
    lambda key: http_reply("307 There", b"", f"Location: https://x.example.com/?k={quote(key)}"),
    lambda key: http_reply("302 There", b"", f"Location: https://x.example.com/{key}"),
    lambda key: http_reply("429 Later", b"", f"Retry-After: {key}"),
    lambda key: http_reply("200 OK", RECORD, f"X-Request-Id: {key}", f"Date: {key}"),
    lambda key: f"HTTP/1.1 200 OK\r\nX-Echo {key}\r\n\r\n".encode(),
    lambda key: f"Bearer {key}\r\n\r\n".encode(),
    lambda key: f"HTTP/1.1 200 {key}\r\nContent-Length: 5\r\n\r\n".encode(),
    lambda key: f"HTTP/1.1 200 OK\r\nContent-Length: {key}\r\n\r\n".encode(),
    lambda key: f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{key}\r\n".encode(),
    lambda key: f"HTTP/1.1 200 OK\r\nContent-Encoding: {key}\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    lambda key: http_reply("200 OK", f'{{"id":"{key}'.encode()),
)


def behave_badly(chance: random.Random, key: str) -> Behave:
    """Answer writes, and mostly reads too, with an echo of the key, or break off."""
    silent: tuple[Behave, ...] = (hang_up, reset)

    def behave(seen: Seen, connection: socket.socket) -> None:
        if chance.random() < 0.15:
            chance.choice(silent)(seen, connection)
            return
        if not seen.is_write and chance.random() < 0.3:
            connection.sendall(http_reply("200 OK", RECORD))
            return
        connection.sendall(chance.choice(ECHOES)(key))
        connection.shutdown(socket.SHUT_WR)

    return behave


DEFECTS = (
    "escrowctl.client.writing.judge_write",
    "escrowctl.client.reading.make_record",
    "escrowctl.journal.journal.Journal.begin",
    "escrowctl.output.tsv.render_fields",
    "escrowctl.client.outcome._judge_answer",
)


@dataclass
class Canary:
    """Looks for one key in everything; `events` are the children that were started."""

    key: str
    home: Path
    found: list[str] = field(default_factory=list)

    def look(self, place: str, data: bytes) -> None:
        for spelling in spellings(self.key):
            if spelling in data:
                self.found.append(f"{place}: {spelling!r} in ...{data[max(0, data.index(spelling) - 60) :][:120]!r}")

    def look_at(self, line: tuple[str, ...], result: Result) -> None:
        self.look(f"{line} stdout", result.out.encode("utf-8", "surrogateescape"))
        self.look(f"{line} stderr", result.err.encode("utf-8", "surrogateescape"))

    def look_into_files(self) -> None:
        for path in self.home.rglob("*"):
            if path.is_file():
                self.look(str(path.relative_to(self.home)), path.read_bytes())


_started: list[str] = []


def _note_children(event: str, _arguments: object) -> None:
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system"):
        _started.append(event)


@pytest.fixture
def children() -> list[str]:
    """Programs started meanwhile: one would inherit the environment with the key in it."""
    if _note_children not in _hooked:
        sys.addaudithook(_note_children)
        _hooked.append(_note_children)
    _started.clear()
    return _started


_hooked: list[Callable[[str, object], None]] = []


def break_now_and_then(chance: random.Random, key: str, patch: pytest.MonkeyPatch) -> None:
    """Let a place in escrowctl itself fail, with the key in the message."""
    if chance.random() > 0.2:
        return

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError(f"a defect with {key} in it")

    patch.setattr(chance.choice(DEFECTS), fail)


@pytest.mark.parametrize("key", KEYS)
def test_over_five_hundred_failing_runs_the_key_is_in_no_byte(
    run: Run, home: Path, key: str, children: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(os.environ.get("ESCROWCTL_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"ESCROWCTL_TEST_SEED={seed}")
    chance, canary = random.Random(seed), Canary(key, home)
    codes: list[int] = []
    with serving(behave_badly(chance, key)) as server:
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key}
        while sum(code != 0 for code in codes) < RUNS // len(KEYS) + 1:
            line = (*chance.choice(LINES), *chance.choice(MANNERS), "--timeout", "5")
            with monkeypatch.context() as patch:
                break_now_and_then(chance, key, patch)
                result = run(*line, environ=environ)
            codes.append(result.code)
            canary.look_at(line, result)
    canary.look_into_files()
    # A reply that is cut in the middle of a key is not the key.
    assert canary.found == []
    assert (home / "state" / "crashes").is_dir(), "no defect was met, and no crash report looked into"
    assert children == []


def test_the_canary_is_noticed_where_nothing_is_starred(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness's own teeth: with redaction taken out it must find the key."""
    key, canary = KEYS[0], Canary(KEYS[0], home)
    monkeypatch.setattr("escrowctl.client.transport._bearer", lambda _request: None)
    with serving(lambda _seen, connection: connection.sendall(ECHOES[4](key))) as server:
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key}
        canary.look_at(LINES[0], run(*LINES[0], environ=environ))

    assert canary.found != []


# Where it goes


@dataclass
class Place:
    """One way in which a key might be led elsewhere: where the tool is pointed, and what the origin answers."""

    name: str
    environ: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    status: str = "307 There"


def _places() -> list[Place]:
    statuses = ("301 Moved", "302 Found", "303 See Other", "307 There", "308 There", "300 Choices", "201 Created")
    locations = ("BEYOND/x", "//BEYOND_HOST/x", "http://KEY@BEYOND_HOST/", "ORIGIN@BEYOND_HOST/", "\\\\BEYOND_HOST\\x")
    redirects = [
        Place(f"{status} to {location}", location=location, status=status)
        for status, location in itertools.product(statuses, locations)
    ]
    proxies = [
        Place(f"{name}={value}", {name: value})
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
        for value in ("BEYOND", "BEYOND_HOST", "socks5://BEYOND_HOST")
    ]
    urls = [
        Place(f"base URL {url}", {"ESCROWCTL_BASE_URL": url})
        for url in (
            "http://user:pass@BEYOND_HOST", "http://BEYOND_HOST#@ORIGIN_HOST", "http://ORIGIN_HOST@BEYOND_HOST",
            "http://BEYOND_HOST\\@ORIGIN_HOST", "http://ORIGIN_HOST/?x=http://BEYOND_HOST",
            "http://ORIGIN_HOST/../@BEYOND_HOST", "http://ORIGIN_HOST\r\nHost: BEYOND_HOST", "//BEYOND_HOST",
            "http://ORIGIN_HOST%40BEYOND_HOST", "http:///BEYOND_HOST",
        )
    ]  # fmt: skip
    return [*redirects, *proxies, *urls]


PLACES = _places()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_the_key_goes_to_its_origin_and_nowhere_else(run: Run, home: Path, place: Place) -> None:
    with serving(say_nothing) as beyond, serving(say_nothing) as origin:

        def filled(text: str) -> str:
            host, there = f"127.0.0.1:{origin.port}", f"127.0.0.1:{beyond.port}"
            for word, value in (("BEYOND_HOST", there), ("ORIGIN_HOST", host), ("BEYOND", beyond.base_url)):
                text = text.replace(word, value)
            return text.replace("ORIGIN", origin.base_url).replace("KEY", KEYS[0])

        def behave(_seen: Seen, connection: socket.socket) -> None:
            head = (f"Location: {filled(place.location)}",) if place.location else ()
            connection.sendall(http_reply(place.status if place.location else "200 OK", RECORD, *head))

        origin.behave = behave
        environ = {"ESCROWCTL_BASE_URL": origin.base_url, "ESCROWCTL_API_KEY": KEYS[0]}
        environ |= {name: filled(value) for name, value in place.environ.items()}
        for line in (LINES[0], LINES[1], LINES[3]):
            result = run(*line, "--timeout", "5", environ=environ)
            assert result.code != 1, result.err

        meant = "base URL" not in place.name
        if meant:
            assert {seen.header("Authorization") for seen in origin.seen} == {f"Bearer {KEYS[0]}"}
        assert [seen for seen in beyond.seen if KEYS[0] in str(seen)] == []
        assert beyond.seen == []


def test_there_are_as_many_places_as_were_asked_for() -> None:
    assert len(PLACES) >= 60
