"""A key that the service echoes is shown and stored in no decoding; what only names its prefix stays readable."""

import json
import random
from pathlib import Path

import pytest
from conftest import Run
from wire_server import Behave, by_method, http_reply, serving

from faults.key_detector import find_key, parts_of
from faults.key_spellings import KEYS, SPELLINGS, Spell
from faults.seeds import draw_seed

COMMANDS = {
    "tx get": ("tx", "get", "tx_1"),
    "tx create": ("tx", "create", "--currency", "USD", "--amount"),
    "api GET": ("api", "GET", "/users/usr_1"),
}
OUTPUT_OPTIONS = ((), ("--json",), ("--debug",))
STATUSES = ("401 No", "200 OK")


def files_with(key: str, folder: Path) -> list[str]:
    """Return the names of the files in which a key is, or whose name holds it."""
    found = []
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if find_key(key, name.encode()) or (path.is_file() and find_key(key, path.read_bytes(), layers=3)):
            found.append(name)
    return found


def leaks_of(run: Run, home: Path, key: str, command: str, spellings: dict[str, Spell]) -> list[str]:
    """Return where a key was found after a command has met every spelling with every choice of output options."""
    found, amount = [], 0
    replies: list[bytes] = []
    with serving(lambda _seen, connection: connection.sendall(replies[-1])) as server:
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key}
        for name, spell in spellings.items():
            for status in STATUSES:
                replies.append(http_reply(status, spell(key)))
                for output_options in OUTPUT_OPTIONS:
                    amount += 1
                    # Each create is another one: an unknown one refuses what is identical.
                    line = COMMANDS[command] + ((str(amount),) if command == "tx create" else ())
                    result = run(*line, *output_options, environ=environ)
                    assert result.code != 1, result.err
                    for stream, text in (("stdout", result.out), ("stderr", result.err)):
                        if shown := find_key(key, text.encode("utf-8", "surrogateescape")):
                            found.append(f"{name}, {status}, {output_options}, {stream}: {shown}")
        found += files_with(key, home)
        assert len(server.seen) >= amount
    return found


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("key", KEYS)
def test_no_spelling_of_an_echoed_key_is_shown_or_stored(run: Run, home: Path, key: str, command: str) -> None:
    assert leaks_of(run, home, key, command, SPELLINGS) == []


def test_detector_finds_the_key_in_each_of_26_spellings() -> None:
    missed = [name for name, spell in SPELLINGS.items() for key in KEYS if not find_key(key, spell(key))]

    assert (len(SPELLINGS), missed) == (26, [])


def ordinary_texts(key: str, chance: random.Random, count: int) -> list[str]:
    """Return texts that name a key's prefix, or show less of it than counts, with all that encoders add."""
    prefix = key[: key.index(parts_of(key)[0])]
    shown = (f"{prefix}...", f"{prefix}test_...", f"{prefix}****{key[-4:]}", f"{key[: len(prefix) + 7]}...", prefix)
    frames = (
        "Invalid API key: {}", "Keys begin with {} &amp; have 24 characters", 'use "{}" (see https://d.example/%7Ekeys)',
        "Schl\u00fcssel {} ung\u00fcltig", "clef \u00ab {} \u00bb", "C:\\keys\\{}", '{{"key":"{}"}}', "{}\u200b!",
        "&#43;{}%2F\\/", "id 9b2e4c1a-77f0-4f7e-8f43-aa21{}",
    )  # fmt: skip
    return [chance.choice(frames).format(chance.choice(shown)) + f" [{chance.random()}]" for _ in range(count)]


@pytest.mark.parametrize("key", KEYS)
def test_replies_with_only_the_prefix_of_the_key_are_unchanged(run: Run, key: str) -> None:
    texts = ordinary_texts(key, random.Random(draw_seed()), 200)
    records = [{"id": f"tx_{number}", "note": text} for number, text in enumerate(texts)]
    reply = http_reply("200 OK", json.dumps(records, ensure_ascii=False).encode())
    with serving(lambda _seen, connection: connection.sendall(reply)) as server:
        shown = run("tx", "list", "--json", environ={"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key})

    assert shown.json == records


def answering_with(text: str) -> Behave:
    refusal = http_reply("403 No", json.dumps({"detail": text}).encode())
    return by_method(GET=lambda _seen, connection: connection.sendall(refusal))


def test_refusal_with_only_the_prefix_of_the_key_is_shown(run: Run) -> None:
    key = KEYS[0]
    for text in (
        "Invalid API key: sk_live_****8tZr",
        "use a key that begins with sk_test_... here",
        "sk_live_ expected",
    ):
        with serving(answering_with(text)) as server:
            result = run("tx", "get", "tx_1", environ={"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key})

        assert (result.code, text in result.err) == (5, True), result.err
