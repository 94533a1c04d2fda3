"""A canary key: how it is configured, how a service may echo it, and a search for it in all output and files.

A place that is meant to hold the key (a file that it is read from, credentials.toml) is recognised by its name.
"""

import base64
import json
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from conftest import Result
from wire_server import Behave, Seen, hang_up, http_reply, reset

KEYS = ("sk_canary_4f1c8a7f2b10d5b4", 'sk_canary_"q\\uoted/+=%41', "sk_canary_plus+slash/eq=")
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
    ("journal", "resolve", "j2", "--resend", "--yes", "--reason", "desk ticket 5512"),
    ("journal", "resolve", "j3", "--applied", "--id", "tx_1", "--reason", "desk ticket 5513"),
    ("journal", "resolve", "j4", "--not-applied", "--reason", "desk ticket 5514"),
    ("journal", "show", "j1"),
    ("config", "list"),
    ("auth", "status", "--check"),
    ("auth", "login", "--base-url", "{url}", "--mode", "test", "-p", "another"),
)
"""The key is on stdin for each of them."""
RECORD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'


def spellings(key: str) -> tuple[bytes, ...]:
    """The key as it might appear: plain, in JSON, in a URL, in a repr, in base64."""
    texts = {key, json.dumps(key)[1:-1], quote(key, safe=""), quote(key), repr(key)[1:-1]}
    coded = base64.b64encode(key.encode()).rstrip(b"=")
    return (*(text.encode() for text in texts), coded)


# Where a key may come from

PROFILE = '[profiles.canary]\nbase_url = "{url}"\n{more}'
STORED = "credentials.toml"


Environment = dict[str, str]


def by_variable(_home: Path, url: str, key: str) -> Environment:
    return {"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": key}


def by_file(home: Path, url: str, key: str) -> Environment:
    return {"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY_FILE": str(keep_key(home, key))}


def by_profile(home: Path, url: str, key: str) -> Environment:
    write_config(home, url, f"api_key_file = {json.dumps(str(keep_key(home, key)))}\n")
    return {"ESCROWCTL_PROFILE": "canary"}


def by_login(home: Path, url: str, key: str) -> Environment:
    """As `auth login` stores it."""
    write_config(home, url, "")
    path = home / STORED
    path.touch(0o600)
    path.write_text(f'[canary]\norigin = "{url}"\nkey = {json.dumps(key)}\n')
    return {"ESCROWCTL_PROFILE": "canary"}


WAYS: dict[str, Callable[[Path, str, str], Environment]] = {
    "variable": by_variable,
    "file": by_file,
    "profile": by_profile,
    "login": by_login,
}
"""Each prepares a home with a key for a service, and returns the environment variables for it."""


def keep_key(home: Path, key: str) -> Path:
    """Return a file of the key next to the home, which is searched."""
    path = home.with_name("given.key")
    path.parent.mkdir(exist_ok=True)
    path.touch(0o600)
    path.write_text(key + "\n")
    return path


def write_config(home: Path, url: str, more: str) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.toml").write_text(PROFILE.format(url=url, more=more))


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


# Where it is looked for


@dataclass
class Canary:
    """Searches for one key in everything under a home except where it is stored."""

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
            if path.is_file() and path != self.home / STORED:
                self.look(str(path.relative_to(self.home)), path.read_bytes())
