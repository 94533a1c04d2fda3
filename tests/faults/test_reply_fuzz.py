"""Mutated replies are all classified, in bounded memory; bombs and drips end at their bounds.

The fuzz itself is `faults.reply_fuzz`; a child process runs it, so that its memory can be measured. Bombs
come from a raw socket to the program as a separate process: its peak memory is what the kernel reports.
"""

import functools
import json
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import internals
import pytest
from conftest import KEY, Run, make_environ

from escrowctl.contract import record as contract_record
from faults import reply_fuzz, reply_variants
from faults.kills import code_of
from faults.misbehaving_service import Connection, Misbehave, MisbehavingServer
from faults.mutated_replies import reply_of
from faults.peak_memory import measure
from faults.seeds import draw_seed
from faults.service_faults import complete, sends

pytestmark = pytest.mark.slow

MEGABYTES = 150
GIBIBYTES = 10


# Fuzz


@pytest.mark.parametrize("count", [1_000, 10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_thousands_of_mutated_replies_are_all_classified(tmp_path: Path, count: int) -> None:
    done = measure([sys.executable, "-m", "faults.reply_fuzz", str(draw_seed()), str(count)], tmp_path)
    assert done.code == 0, done.err[-3000:]
    classes = json.loads(done.out)["classes"]
    print(done)
    assert sum(classes.values()) == count
    # Were one of these rare, the mutations would be too wild to be read at all, or too tame.
    assert min(classes[name] for name in ("unknown", "done", "refused", "read", "read_failed")) > 0.02 * count
    assert done.megabytes < MEGABYTES


LINES = (
    ("tx", "create", "--amount", "{}", "--currency", "USD"),
    ("tx", "get", "tx_{}"),
    ("tx", "release", "tx_{}", "--yes", "--allow-unreadable"),
    ("tx", "list"),
    ("webhook", "create", "--url", "https://hooks.example.net/{}"),
    ("webhook", "list"),
    ("user", "get", "u_{}"),
    ("tx", "update", "tx_u{}", "--data", '{"note":"x"}', "--yes", "--allow-unreadable"),
)
WRITE_CODES, READ_CODES = {0, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16}, {0, 4, 5, 6, 7, 8, 9, 10, 16}


@pytest.mark.parametrize("count", [20, 100, pytest.param(3_000, marks=pytest.mark.long)])
def test_commands_end_as_judged_for_mutated_replies(run: Run, count: int) -> None:
    """The same replies over sockets, to whole command lines, with every choice of output options."""
    seed = draw_seed()
    chance = random.Random(seed)
    for number in range(count):
        data, _ = reply_of(seed, number)
        line = tuple(word.replace("{}", str(number + 1)) for word in chance.choice(LINES))
        output_options = chance.choice((("--json",), (), ("--debug",), ("-v", "--json")))
        server = MisbehavingServer(lambda connection, data=data: connection.send(data), b"")  # type: ignore[misc] # bound for B023
        with closing(server):
            environ = {"ESCROWCTL_BASE_URL": f"http://127.0.0.1:{server.port}", "ESCROWCTL_API_KEY": KEY}
            result = run(*line, *output_options, environ=environ, terminal=chance.random() < 0.5)
        said = result.out + result.err
        where = f"reply {number} of ESCROWCTL_TEST_SEED={seed}, {line}, {data[:300]!r}: {result}"
        writes = line[1] in ("create", "release", "update")
        assert result.code in (WRITE_CODES if writes else READ_CODES), where
        assert len(server.writes) <= (3 if result.code == 9 else 1), where
        assert "Traceback" not in said, where
        assert KEY not in said, where


@pytest.mark.parametrize(
    ("variant", "noticed"),
    [
        (reply_variants.reads_carelessly, "Expecting|delimiter|Invalid|digits|recursion|codec"),
        (reply_variants.judges_by_status_alone, "done, by"),
        (reply_variants.takes_errors_for_refusals, "refused, by"),
        (reply_variants.lets_decoding_raise, "rror"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.usefixtures("time_limit")
def test_the_fuzz_notices_a_broken_variant(
    variant: reply_variants.Variant, noticed: str, monkeypatch: pytest.MonkeyPatch, reached: reply_variants.Reached
) -> None:
    variant(monkeypatch, reached)

    with pytest.raises(Exception, match=noticed) as found:
        reply_fuzz.run(7, 600)

    assert any("ESCROWCTL_TEST_SEED=7" in note for note in found.value.__notes__)


def test_fuzz_passes_with_the_unbroken_program() -> None:
    reply_fuzz.run(7, 600)


@pytest.mark.parametrize("output_options", ["--json", "--debug"])
def test_key_in_a_fuzzed_reply_is_neither_shown_nor_stored(output_options: str, run: Run, home: Path) -> None:
    echo = f"HTTP/1.1 200 OK\r\nX-Your-Authorization : Bearer {KEY}\r\n\r\n".encode()
    with closing(MisbehavingServer(sends(echo), b"")) as server:
        environ = {"ESCROWCTL_BASE_URL": f"http://127.0.0.1:{server.port}", "ESCROWCTL_API_KEY": KEY}
        result = run(*CREATE, output_options, environ=environ)

    assert result.code == 12
    assert KEY not in result.out + result.err
    assert not any(KEY.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["data", "transactions", "unusual"])
def test_envelopes_in_envelopes_are_searched_once_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Any] = []
    search = internals.read(internals.FIND_ITEMS)

    def counting(document: Any, *more: Any, **keywords: Any) -> Any:
        searched.append(document)
        return search(document, *more, **keywords)

    monkeypatch.setattr(internals.FIND_ITEMS, counting)
    innermost: Any = {}
    nested = functools.reduce(lambda inner, _: {name: inner}, range(12), innermost)

    found = contract_record.find_items(nested, noun="transaction")

    assert found is None
    # The document, and the envelopes in it as deep as anybody looks: none of them twice.
    assert searched == [nested, nested[name], nested[name][name], nested[name][name][name]]


# Bombs and drips, in a separate process


@dataclass
class Ended:
    """How a process ended: its peak memory, and how long it was connected to the server."""

    code: int
    megabytes: int
    seconds: float
    err: str


def run_against(behave: Misbehave, home: Path, *line: str, variant: str | None = None, seconds: str = "1") -> Ended:
    """Run one command in a separate process against one behaviour; the server takes the time."""
    begun: list[float] = []
    ended = threading.Event()

    def timed(connection: Connection) -> None:
        begun.append(time.monotonic())
        try:
            behave(connection)
        finally:
            begun.append(time.monotonic())
            ended.set()

    with closing(MisbehavingServer(timed, b"")) as server:
        environ = make_environ(home, f"http://127.0.0.1:{server.port}")
        environ["BROKEN_MARK"] = str(home.with_name("broken-here"))
        home.mkdir()
        words = [sys.executable, "-c", code_of(variant), *line, "--timeout", seconds]
        done = measure(words, home.parent, environ=environ)
        assert ended.wait(10)
    return Ended(done.code, done.megabytes, begun[1] - begun[0], done.err)


def streams(head: bytes, make: Callable[[], Iterator[bytes]]) -> Misbehave:
    """Send a reply piece by piece as long as the client takes it; nothing of it is ever held."""

    def behave(connection: Connection) -> None:
        connection.send(head)
        for piece in make():
            connection.send(piece)

    return behave


def bomb(gibibytes: float = GIBIBYTES) -> Iterator[bytes]:
    """Yield a gzip stream of so many GiB of zeros."""
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    piece = bytes(1 << 20)
    for _ in range(int(gibibytes * 1024)):
        yield squeezer.compress(piece)
    yield squeezer.flush()


def nothing_squeezed() -> Iterator[bytes]:
    """Yield a gzip stream that never ends and never says anything: empty stored blocks (RFC 1951 section 3.2.4)."""
    yield bytes.fromhex("1f8b0800000000000003")
    while True:
        yield b"\x00\x00\x00\xff\xff" * 20_000


def plain() -> Iterator[bytes]:
    for _ in range(GIBIBYTES << 10):
        yield b" " * (1 << 20)


def drips(piece: bytes) -> Callable[[], Iterator[bytes]]:
    def make() -> Iterator[bytes]:
        for _ in range(60):
            time.sleep(0.05)
            yield piece

    return make


GZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\n\r\n"
ENDLESS: dict[str, Misbehave] = {
    "a gzip bomb of 10 GiB": streams(GZIPPED, bomb),
    "a gzip that says nothing": streams(GZIPPED, nothing_squeezed),
    "10 GiB of spaces": streams(PLAIN, plain),
    "a drip in the head": streams(b"HTTP/1.1 200 OK\r\nX-A: ", drips(b"x")),
    "a drip in the body": streams(PLAIN, drips(b" ")),
    "a drip of interim replies": streams(b"", drips(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
}
GET, LIST = ("tx", "get", "tx_1"), ("tx", "list")
CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")


def end_within_bounds(name: str, line: tuple[str, ...], home: Path) -> None:
    ended = run_against(ENDLESS[name], home, *line)
    print(name, ended)
    assert ended.code == (10 if line is GET else 12)
    assert ended.seconds < 1 + 1
    assert ended.megabytes < MEGABYTES


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_replies_end_within_bounds(name: str, tmp_path: Path) -> None:
    end_within_bounds(name, GET if "gzip" in name else CREATE, tmp_path / "home")


@pytest.mark.long
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("line", [GET, CREATE], ids=["get", "create"])
def test_endless_replies_end_within_bounds_every_time(name: str, line: tuple[str, ...], tmp_path: Path) -> None:
    for number in range(50):
        end_within_bounds(name, line, tmp_path / str(number))


def nested(one: bytes) -> Misbehave:
    return lambda connection: connection.send(complete(b"[" + b",".join([one] * (60_000_000 // len(one))) + b"]"))


LISTS: dict[str, tuple[Misbehave, int]] = {
    "many small items": (sends(complete(b"[" + b"1," * (1 << 20) + b"1]")), MEGABYTES),
    **{name: (ENDLESS[name], MEGABYTES) for name in ("a gzip bomb of 10 GiB", "10 GiB of spaces")},
    "nested objects": (nested(b'{"a":' * 29 + b"1" + b"}" * 29), 2 * MEGABYTES),
    "nested arrays": (nested(b"[" * 30 + b"]" * 30), 2 * MEGABYTES),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if "nested" in name else pytest.mark.long) for name in LISTS]
)
def test_list_is_read_in_bounded_memory(name: str, tmp_path: Path) -> None:
    behave, most = LISTS[name]

    ended = run_against(behave, tmp_path / "home", *LIST, seconds="20")

    print(ended)
    assert (ended.code, ended.megabytes < most) == (10, True)


@pytest.mark.parametrize(
    ("variant", "behave"),
    [("has_no_limit", streams(GZIPPED, lambda: bomb(0.2))), ("has_no_deadline", ENDLESS["a drip in the body"])],
    ids=["has_no_limit", "has_no_deadline"],
)
@pytest.mark.usefixtures("time_limit")
def test_the_bounds_notice_a_broken_variant(variant: str, behave: Misbehave, tmp_path: Path) -> None:
    seconds = "10" if variant == "has_no_limit" else "1"
    ended = run_against(behave, tmp_path / "home", *GET, variant=variant, seconds=seconds)

    print(ended)
    assert ended.megabytes >= MEGABYTES if variant == "has_no_limit" else ended.seconds >= 2
