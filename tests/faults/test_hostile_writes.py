"""Hostile text around a write: in its output, in the prompt, in `journal resolve`, and in a spreadsheet.

Each place takes strings and shows them all: 20,000 in the long form, a few hundred drawn from the seed in the short.
"""

import csv
import io
import random
from collections.abc import Callable, Iterable, Iterator

import internals
import pytest

from escrowctl.characters import is_visible
from faults import reply_variants
from faults.hostile_terminal import Service, harm_in, hostile
from faults.reply_variants import Reached
from faults.seeds import draw_seed

pytestmark = pytest.mark.slow

SHORT, LONG = 240, 20_000
IN_ONE_RECORD = 120

Shown = tuple[int, str]
"""An exit code, and what the terminal received."""
Show = Callable[[Service, list[str]], Iterator[Shown]]


def in_pieces(strings: list[str], size: int) -> Iterable[tuple[int, list[str]]]:
    """Yield (number, that many strings), the last ones filled up with an x."""
    for start in range(0, len(strings), size):
        piece = strings[start : start + size]
        yield start, piece + ["x"] * (size - len(piece))


def record_of(resource_id: str, texts: list[str]) -> dict[str, object]:
    """Return a record with texts in every field but `id` and `amount`."""
    record: dict[str, object] = {"id": resource_id, "status": texts[0], "currency": texts[1], "created": texts[2]}
    return {**record, "amount": 7, **{f"{number}{text}": text for number, text in enumerate(texts[3:])}}


def in_creates(service: Service, strings: list[str]) -> Iterator[Shown]:
    for number, texts in in_pieces(strings, IN_ONE_RECORD):
        service.answer(record_of(texts[0], texts))
        yield service.show("tx", "create", "--amount", str(number + 1), "--currency", "USD")


def in_updates(service: Service, strings: list[str]) -> Iterator[Shown]:
    for number, texts in in_pieces(strings, IN_ONE_RECORD):
        service.answer(record_of(f"tx_{number}", texts))
        yield service.show("tx", "update", f"tx_{number}", "--data", '{"note":"x"}', "--yes")


def in_releases(service: Service, strings: list[str]) -> Iterator[Shown]:
    for number, texts in in_pieces(strings, 6):
        service.answer(record_of(f"tx_{number}", ["".join(texts[:3]), "".join(texts[3:]), "x"]))
        yield service.show("tx", "release", f"tx_{number}", "--yes", *(("-v",) if number % 4 else ()))


def in_refused_releases(service: Service, strings: list[str]) -> Iterator[Shown]:
    for number, texts in in_pieces(strings, 10):
        service.answer(record_of(f"tx_{number}", ["held", "USD", "x"]))
        # Not more than an error shows of them.
        title, detail = ("".join(text[:20] for text in some) for some in (texts[:5], texts[5:]))
        service.answer_writes({"title": title, "detail": detail}, "400 No")
        yield service.show("tx", "release", f"tx_{number}", "--yes")


def in_confirmations(service: Service, strings: list[str]) -> Iterator[Shown]:
    """The prompt, and what was typed instead of the confirmation."""
    for number, texts in in_pieces(strings, 4):
        service.answer(record_of(f"tx_{number}", [texts[0] + texts[2], texts[1], "x"]))
        line = (("release",), ("update", "--data", '{"note":"x"}'))[number // 4 % 2]
        yield service.show("tx", line[0], f"tx_{number}", *line[1:], typed=f"{texts[3]}\n")


def in_what_is_found(service: Service, strings: list[str]) -> Iterator[Shown]:
    """Notes of `journal resolve`: five records that an unknown create may have made, one named by the operator."""
    for number, texts in in_pieces(strings, 16):
        amount = number + 1
        service.answer({"detail": "late"}, "500 Oh")
        service.show("tx", "create", "--amount", str(amount), "--currency", "USD")
        found = [record_of(text, ["x", "USD", "x"]) | {"amount": amount} for text in texts[:5]]
        found = [{**one, "status": text, "created": text} for one, text in zip(found, texts[5:10], strict=True)]
        service.answer(found)
        name = f"j{number // 16 + 1}"
        yield service.show("journal", "resolve", name)
        applied = ("journal", "resolve", name, "--applied", "--id", f"tx_{number}", "--reason", "desk")
        said: dict[str, object] = {"id": f"tx_{number}", "amount": amount, "currency": "USD"}
        for more, status in (
            ({"id": texts[10]}, "200 OK"),
            ({"currency": texts[11] + texts[12]}, "200 OK"),
            ({"detail": "".join(text[:20] for text in texts[13:15])}, "404 No"),
            ({"status": texts[15]}, "200 OK"),
        ):
            service.answer(said | more, status)
            yield service.show(*applied)


PLACES: dict[str, tuple[Show, frozenset[int]]] = {
    "creates": (in_creates, frozenset({12, 16})),
    "updates": (in_updates, frozenset({0})),
    # 7: a status that reads "released" without its invisible characters is one.
    "releases": (in_releases, frozenset({0, 7})),
    "refused releases": (in_refused_releases, frozenset({8})),
    "confirmations": (in_confirmations, frozenset({3, 7})),
    "found": (in_what_is_found, frozenset({0, 3, 6, 7, 10, 12})),
}
"""Where text is shown, and the exits that such a run may have."""


def show_strings(service: Service, place: str, strings: list[str]) -> None:
    show, right = PLACES[place]
    for code, shown in show(service, strings):
        assert code in right, (code, shown[-500:])
        assert not harm_in(shown), f"{harm_in(shown)} in {shown[:2000]!r}"
        assert "MarkupError" not in shown
        assert len(shown) > 10


@pytest.mark.parametrize("count", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("place", PLACES)
def test_hostile_strings_around_writes_do_not_harm_terminals(place: str, count: int, service: Service) -> None:
    chance = random.Random(draw_seed())
    show_strings(service, place, [hostile(chance) for _ in range(count)])


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
IN_A_SHEET = 150


def seen(char: str) -> bool:
    return is_visible(char) and not char.isspace()


def export(service: Service, strings: list[str]) -> None:
    """Write strings into the journal in every way that there is, export it, and read that as a spreadsheet does."""
    # One line of printable text: the program takes no other from who types.
    typed = [text for text in strings if text.isprintable() and any(map(seen, text)) and len(text) < 400]
    assert len(typed) > len(strings) // 20
    references = []
    for number, (name, detail, note) in in_pieces(strings, 3):
        references.append(f"{typed[number % len(typed)]}{number}")
        if number % 2:
            service.answer({"title": name, "detail": detail}, "400 No")
        else:
            service.answer({"id": name, "status": detail, "note": note})
        line = ("tx", "create", "--amount", str(number + 1), "--currency", "USD")
        words = (f"--reference={references[-1]}", f"--reason={typed[(number + 1) % len(typed)]}")
        code, shown = service.show(*line, *words)
        # 16: by chance an earlier create has the id too.
        assert code in (0, 8, 12, 16), shown
    exported = service.run("journal", "export", "--csv")
    listed = service.run("journal", "list", "--json", "--limit", str(len(references)))

    assert (exported.code, harm_in(exported.out.replace("\r\n", "\n"))) == (0, set())
    head, *rows = csv.reader(io.StringIO(exported.out, newline=""), strict=True)
    assert (len(rows), {len(row) for row in rows}) == (len(references), {len(head)})
    assert [cell for row in rows for cell in row if cell.lstrip().startswith(FORMULA_STARTS)] == []
    # JSON has the same text unchanged.
    assert [entry["reference"] for entry in reversed(listed.json)] == references


@pytest.mark.parametrize("count", [IN_A_SHEET, pytest.param(LONG, marks=pytest.mark.long)])
def test_hostile_strings_make_no_formula_in_a_spreadsheet(service: Service, count: int) -> None:
    chance = random.Random(draw_seed())
    export(service, [hostile(chance) for _ in range(count)])


# Teeth


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.usefixtures("time_limit")
def test_harness_detects_unescaped_text_around_a_write(
    place: str, service: Service, monkeypatch: pytest.MonkeyPatch, reached: Reached
) -> None:
    reply_variants.makes_nothing_safe(monkeypatch, reached)

    with pytest.raises(AssertionError, match="U\\+"):
        show_strings(service, place, ["\x1b[2J", "\x9b31m", "\u202e", "\u200b"] * 8)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1+1"])
def test_the_harness_notices_a_formula(text: str, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals.FORMULA_STARTS, ("nothing",))

    with pytest.raises(AssertionError, match=r"== \[\]"):
        export(service, [text] * 6)
