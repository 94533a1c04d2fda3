"""Service text is data at a terminal too: it does not move the cursor, hide text or act as markup.

The terminal is real (a pty of this process), the strings are many to a reply, and what may not come out
is listed here by code point, from Unicode's own categories of harm: nothing asks `safe` what is safe.
"""

import random
import re
from collections.abc import Callable

import pytest
from wire_server import http_reply

from faults import reply_variants
from faults.hostile_terminal import UNSEEN, Service, harm_in, hostile
from faults.reply_variants import Reached
from faults.seeds import draw_seed

LONG = 20_000
IN_ONE_REPLY = 250

# Every place where a service's text is shown. Each takes strings, and shows them all.

Show = Callable[[Service, list[str]], list[tuple[int, str]]]


def in_one_record(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    record: dict[str, object] = {"id": "tx_1", "list": strings[:20]}
    record |= {f"{number}{text}": text for number, text in enumerate(strings)}
    service.answer(record, ascii_only=False)
    return [service.show("tx", "get", "tx_1"), service.show("user", "get", "u_1")]


def in_a_list(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    fields = ("id", "status", "currency", "created_at", "amount")
    rows = [strings[start : start + len(fields)] for start in range(0, len(strings), len(fields))]
    service.answer([dict(zip(fields, row, strict=False)) for row in rows])
    return [service.show("tx", "list"), service.show("tx", "list", "-q"), service.show("tx", "list", "-v")]


def in_a_list_of_webhooks(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    rows = [strings[start : start + 5] for start in range(0, len(strings), 5)]
    service.answer(
        {
            "data": [
                {"id": row[0], "status": row[-1], "url": row[0], "events": row[1:], "created": row[-1]} for row in rows
            ]
        },
        ascii_only=False,
    )
    return [service.show("webhook", "list")]


def in_errors(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    shown = []
    for start in range(0, len(strings), 10):
        text = "".join(string[:20] for string in strings[start : start + 10])
        service.answer({"detail": text, "title": text}, "400 Bad Request", ascii_only=start % 20 == 0)
        shown.append(service.show("tx", "get", "tx_1"))
    return shown


def in_what_is_not_json(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    shown = []
    for start in range(0, len(strings), 10):
        text = "".join(string[:20] for string in strings[start : start + 10])
        service.replies[:] = [http_reply("200 OK", b"x" + text.encode("utf-8", "replace"))]
        shown.append(service.show("tx", "get", "tx_1", "--debug"))
        shown.append(service.show("api", "GET", "/items"))
    return shown


def in_several(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    shown = []
    for start in range(0, len(strings), 4):
        row = strings[start : start + 4]
        service.answer({"amount": 1, "status": row[-1], "currency": row[0], "created": row[-1]})
        code, lines = service.show("tx", "get", f"tx_{start}", f"tx_{start}b")
        # A header and a line for each: no text of a record begins another line.
        assert len(lines.split("\n")) == 3 + lines.endswith("\n")
        shown.append((code, lines))
    return shown


def in_the_journal(service: Service, strings: list[str]) -> list[tuple[int, str]]:
    for number in range(0, min(len(strings), 60), 6):
        row = strings[number : number + 6]
        service.answer({"id": row[0], "status": row[-1], "amount": 1, "currency": row[0], "note": row})
        service.show("tx", "create", "--amount", str(number + 1), "--currency", "USD")
    names = re.findall(r"^j[0-9]+", service.show("journal", "list", "-q")[1], re.MULTILINE)
    return [service.show("journal", "list"), *(service.show("journal", "show", name) for name in names[:4])]


PLACES: dict[str, tuple[Show, int]] = {
    "records": (in_one_record, 0),
    "lists": (in_a_list, 0),
    "webhooks": (in_a_list_of_webhooks, 0),
    "errors": (in_errors, 8),
    "no JSON": (in_what_is_not_json, -1),
    "several ids": (in_several, 0),
    "journal": (in_the_journal, 0),
}
"""Where text is shown, and the exit code (-1: either of two)."""
MANY_TO_A_RUN = ("records", "lists", "webhooks")


def show_strings(service: Service, place: str, strings: list[str]) -> None:
    show, right = PLACES[place]
    for code, shown in show(service, strings):
        assert code == right or (right == -1 and code in (0, 10)), shown[-500:]
        assert shown
        assert not harm_in(shown), f"{harm_in(shown)} in {shown[:2000]!r}"
        assert "MarkupError" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("count", [750, 2_000, pytest.param(LONG, marks=pytest.mark.long)])
def test_thousands_of_hostile_strings_do_a_terminal_no_harm(service: Service, count: int) -> None:
    """Show so many strings, all of them in tables and records, some of them wherever a run shows few."""
    chance = random.Random(draw_seed())
    for number in range(0, count, IN_ONE_REPLY):
        strings = [hostile(chance) for _ in range(IN_ONE_REPLY)]
        show_strings(service, MANY_TO_A_RUN[(number // IN_ONE_REPLY) % 3], strings)
    for place in PLACES:
        show_strings(service, place, [hostile(chance) for _ in range(600 if count == LONG else 60)])


def test_with_colours_only_our_own_come_out(service: Service) -> None:
    chance = random.Random(draw_seed())
    service.answer([{"id": hostile(chance), "status": hostile(chance)} for _ in range(100)])

    code, shown = service.show("tx", "list", color="always")

    assert (code, harm_in(shown, styled=True)) == (0, set())
    assert set(re.findall(r"\x1b\[[0-9;]*m", shown)) <= {"\x1b[1m", "\x1b[0m"}
    assert "\x1b[1m" in shown


def test_hostile_text_is_lossless_in_json(service: Service) -> None:
    chance = random.Random(draw_seed())
    rows = [{f"key {hostile(chance)}": hostile(chance), "id": hostile(chance)} for _ in range(500)]

    service.answer(rows, ascii_only=False)
    assert service.tell("tx", "list") == rows
    service.answer({"data": {"id": "tx_1", "rows": rows}})
    assert service.tell("tx", "get", "tx_1") == {"id": "tx_1", "rows": rows}


@pytest.mark.parametrize("escape", [r"\ud800", r"\udc00x", r"\ud800\ud800", r"\udfff\ud800"])
def test_half_a_character_is_no_reply_and_does_no_harm(escape: str, service: Service) -> None:
    service.replies[:] = [http_reply("200 OK", b'{"id":"tx_1","note":"%s"}' % escape.encode())]

    code, shown = service.show("tx", "get", "tx_1")

    assert (code, harm_in(shown)) == (10, set())


def test_ids_with_line_ends_do_not_start_a_line(service: Service) -> None:
    ids = [f"tx_{number}{end}tx_other" for number, end in enumerate(("\n", "\r\n", "\x0b", "\x85", "\u2028", "\x1e"))]
    service.answer([{"id": resource_id, "status": resource_id} for resource_id in ids])

    for line, count in ((("tx", "list", "-q"), 6), (("tx", "list"), 7)):
        code, shown = service.show(*line)
        starts = [text for text in shown.split("\n") if text.startswith("tx_")]
        assert (code, len(starts), shown.count("\n") >= count) == (0, 6, True)
        assert not any(text.startswith("tx_other") for text in starts)


def test_hostile_headers_do_a_terminal_no_harm(service: Service) -> None:
    for text in ("\x9b2J", "\x9d0;x\x9c", "\x85", "\xad", "\xa0\x80"):
        headers = (f"Location: https://x/{text}", f"Retry-After: {text}", f"X-Request-Id: {text}")
        data = http_reply("301 Moved", b"")
        head = "\r\n".join(("", *headers)).encode("latin-1")
        service.replies[:] = [data.replace(b"\r\nContent-Length", head + b"\r\nContent-Length", 1)]
        code, shown = service.show("tx", "get", "tx_1", "--debug")
        assert (code, harm_in(shown)) == (8, set()), repr(shown)


def test_undisplayable_characters_are_shown_by_code(service: Service) -> None:
    service.answer({"id": "tx_1", "note": "".join(map(chr, sorted(UNSEEN)))}, ascii_only=False)

    _, shown = service.show("tx", "get", "tx_1")

    assert {char for char in shown if ord(char) in UNSEEN} == set()


# Teeth


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.usefixtures("time_limit")
def test_harness_detects_unescaped_text(
    place: str, service: Service, monkeypatch: pytest.MonkeyPatch, reached: Reached
) -> None:
    reply_variants.makes_nothing_safe(monkeypatch, reached)
    strings = ["\x1b[2J", "\x9b31m", "\u202e", "\u200b"] * 15

    with pytest.raises(AssertionError, match="U\\+"):
        show_strings(service, place, strings)


@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
def test_the_harness_notices_markup(service: Service, monkeypatch: pytest.MonkeyPatch, reached: Reached) -> None:
    reply_variants.reads_markup(monkeypatch, reached)

    with pytest.raises(AssertionError):
        show_strings(service, "records", ["[/foo]", "plain"])
