"""The key is sent to its origin only, despite redirects, proxies and URLs that lead elsewhere."""

import itertools
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme
from conftest import Run
from wire_server import Seen, http_reply, say_nothing, serving

from faults.canary import KEYS, LINES, RECORD
from faults.misbehaving_service import Connection, MisbehavingServer


@dataclass
class Place:
    """One way in which a key might be led elsewhere: where the tool is pointed, and what the origin answers."""

    name: str
    environ: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    status: str = "307 There"

    @property
    def is_refused(self) -> bool:
        """A base URL that two readers understand differently is refused: exit 2."""
        return "ESCROWCTL_BASE_URL" in self.environ


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


@pytest.mark.representative(
    "HTTP_PROXY=BEYOND",
    "ALL_PROXY=socks5*",
    "https_proxy=BEYOND",
    "301 Moved to BEYOND/x",
    "302 Found to //*",
    "307 There to ORIGIN@*",
    "308 There to http://KEY@*",
    "201 Created to BEYOND/x",
)
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
            if place.is_refused:
                assert (result.code, result.out, result.err.count("Nothing was sent.")) == (2, "", 1), result.err
            assert result.code != 1, result.err

        if place.is_refused:
            assert origin.seen == []
        else:
            assert {seen.header("Authorization") for seen in origin.seen} == {f"Bearer {KEYS[0]}"}
        assert beyond.seen == []


# Through a proxy, in TLS

HOST = "escrow.test"


def answer(connection: Connection) -> None:
    connection.send(http_reply("200 OK", RECORD, "Connection: close"))


def ask_through(run: Run, server: MisbehavingServer, bundle: Path, proxy: str) -> list[int]:
    """Run lines against https://HOST through a proxy (`PORT` is the server's), and return their exit codes."""
    environ = {
        "ESCROWCTL_BASE_URL": f"https://{HOST}",
        "ESCROWCTL_API_KEY": KEYS[0],
        "ESCROWCTL_CA_BUNDLE": str(bundle),
        "HTTPS_PROXY": proxy.replace("PORT", str(server.port)),
    }
    lines = ((*LINES[0], "--idempotency-key", "a"), LINES[1], LINES[4])
    return [run(*line, "--timeout", "5", environ=environ).code for line in lines]


def tunnel_to(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


@pytest.fixture
def bundle(tmp_path: Path) -> tuple[trustme.CA, Path]:
    authority, path = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return authority, path


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:PORT", "http://someone:pass@127.0.0.1:PORT"], ids=["", "userinfo"])
def test_a_proxy_sees_no_key_of_an_https_origin(run: Run, bundle: tuple[trustme.CA, Path], proxy: str) -> None:
    authority, path = bundle
    server = MisbehavingServer(answer, b"", tunnel=tunnel_to(authority, HOST))
    with closing(server):
        codes = ask_through(run, server, path, proxy)

    assert codes == [0, 0, 10]  # the record is no list
    assert {seen.header("Authorization") for seen in server.seen} == {f"Bearer {KEYS[0]}"}
    assert len(server.tunnels) == len(server.seen) == 3
    assert [line for head in server.tunnels for line in head if KEYS[0].encode() in line] == []


@pytest.mark.parametrize("stranger", ["another name", "another authority"])
def test_proxy_that_answers_for_an_https_origin_gets_no_key(
    run: Run, bundle: tuple[trustme.CA, Path], stranger: str
) -> None:
    authority, path = bundle
    tls = tunnel_to(authority, "other.test") if stranger == "another name" else tunnel_to(trustme.CA(), HOST)
    server = MisbehavingServer(answer, b"", tunnel=tls)
    with closing(server):
        codes = ask_through(run, server, path, "http://127.0.0.1:PORT")

    assert codes == [11, 11, 11]
    assert (server.seen, [line for head in server.tunnels for line in head if KEYS[0].encode() in line]) == ([], [])


def test_key_leak_places_are_enough() -> None:
    assert len(PLACES) >= 60
