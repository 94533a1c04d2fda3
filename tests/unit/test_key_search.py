"""Which text counts as the key; the search is fast and changes nothing else."""

import html
import json
import random
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from faults.key_detector import find_key
from faults.key_spellings import KEYS
from faults.seeds import draw_seed

from escrowctl.contract.redaction import holds_key, star, star_possible_key

KEY = "sk_live_Ab+9/Cd7Q==kx3VnW8tZr"


@pytest.mark.parametrize(
    ("key", "text", "held"),
    [
        (KEY, KEY, True),
        (KEY, "sk_live_", False),
        (KEY, "sk_live_Ab+9/Cd7Q==", False),
        (KEY, "Ab+9/Cd7Q==k", True),
        (KEY, "Q==kx3VnW8tZ", True),
        (KEY, "==kx3VnW8tZ", False),
        (KEY, "sk_test_Xb+9/Cd7Q==Xx3VnW8tZr", False),
        ("sk_live_0123456789", "01234567", True),
        ("sk_live_0123456789", "0123456", False),
        ("sk_live_0123", "sk_live_0123", True),
        ("sk_live_0123", "live_0123", False),
        ("4f1c8a7f2b10d5b4", "4f1c8a7f2b10", True),
        ("4f1c8a7f2b10d5b4", "4f1c8a7f2b1", False),
        ("password", "the password is wrong", True),
    ],
)
def test_key_search_counts_these_parts_as_the_key(key: str, text: str, held: bool) -> None:  # noqa: FBT001 - a case of the table
    assert holds_key(f"<{text}>", key) is held
    assert holds_key(f"<{text}>".encode("utf-16"), key) is held


def test_plain_key_is_starred_in_place_encoded_key_completely() -> None:
    assert star(f"bad key {KEY}, again {KEY}.", KEY) == "bad key ***, again ***."
    assert star(f"bad key {quote(KEY)}, again {KEY}.", KEY) == "***"
    assert star(f"bad key {KEY[:-1]}", KEY) == "***"


def _spell_all(char_of: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(char_of(char) for char in text)


ENCODERS: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    _spell_all(lambda char: char if char.isalnum() else f"\\u{ord(char):04X}"),
    html.escape,
    _spell_all(lambda char: char if char.isalnum() else f"&#{ord(char)};"),
    _spell_all(lambda char: f"&#x{ord(char):x};"),
    lambda text: quote(text, safe=""),
    _spell_all(lambda char: f"%{ord(char):02x}"),
    "\u200b".join,
)
FRAMES = ("Invalid key {}", "?k={}&x=1", '{{"key":"{}"}}', "<b>{}</b>", "{}")


@pytest.mark.slow
def test_key_in_any_two_encodings_is_starred_at_any_cut() -> None:
    chance = random.Random(draw_seed())
    for _ in range(2000):
        key = text = chance.choice(KEYS)
        for encode in chance.choices(ENCODERS, k=chance.randint(0, 2)):
            text = encode(text)
        text = chance.choice(FRAMES).format(text)
        for shown_text in (text, text[: chance.randint(len(text) // 2, len(text))]):
            assert find_key(key, star(shown_text, key).encode()) is None, shown_text


ORDINARY = {
    "plain": '{"id":"tx_9f86d081884c7d65","status":"held","amount":"100.00","note":"Order 17 for the customer"},',
    "addresses": '{"url":"https:\\/\\/hooks.example.net\\/x%20y\\/%D0%B0?a=1&b=%2Fz"},',
    "not ASCII": json.dumps({"note": "\u0417\u0430\u043a\u0430\u0437 \u043d\u043e\u043c\u0435\u0440"}) + ",",
    "HTML": '{"note":"A &amp; B &quot;C&quot; &#39;D&#39;"},',
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_list_of_64_megabytes_is_searched_in_seconds(text: str) -> None:
    record = (ORDINARY["plain"] * 5 + text).encode()
    body = record * (64 * 1024 * 1024 // len(record))

    start = time.process_time()
    held = holds_key(body, KEY)

    assert (held, time.process_time() - start < 4) == (False, True)


def test_entities_may_have_any_number_of_zeros() -> None:
    text = "".join(f"&#{ord(char):05000};" for char in KEY)

    assert star(text, KEY) == "***"


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (KEY, "***"),
        ("4f1c8a7f2b10d5b4e6a90c3d7f5e2a18", "***"),
        ("acme-live", "acme-live"),
        ("escrow.example.com", "escrow.example.com"),
        ("escrow2.example.com:8443", "escrow2.example.com:8443"),
        ("/run/secrets/escrow-key-1", "/run/secrets/escrow-key-1"),
    ],
)
def test_typed_value_that_could_be_a_key_is_not_quoted(value: str, quoted: str) -> None:
    assert star_possible_key(value) == quoted
