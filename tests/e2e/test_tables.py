"""Tables at a terminal, tabs in a pipe; and an id is whole in both, however narrow."""

import pytest
from conftest import Serve
from wire_server import answering, http_reply

from e2e.script import Program, plain

CREATED = b'{"id":"tx_7K2M9QHD","status":"held","amount":100,"currency":"USD"}'
LONG_ID = "tx_0190c2a8_5a3e_7bb1_9d0e_2f6a4c81e7d5"


@pytest.mark.slow
def test_record_is_aligned_at_a_terminal_tabbed_in_pipes(program: Program, serve: Serve) -> None:
    there = program.at(serve(answering(http_reply("200 OK", CREATED))))
    code, shown = there.terminal("tx", "get", "tx_7K2M9QHD").finish()
    assert (code, plain(shown)) == (0, "id        tx_7K2M9QHD\nstatus    held\namount    100\ncurrency  USD\n")
    piped = there.run("tx", "get", "tx_7K2M9QHD")
    assert (piped.code, piped.out) == (0, "id\ttx_7K2M9QHD\nstatus\theld\namount\t100\ncurrency\tUSD\n")


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_terminal_without_colour_gets_no_colour(program: Program, serve: Serve, variable: str) -> None:
    there = wide(program, serve).with_environ(**{variable: {"NO_COLOR": "1", "TERM": "dumb"}[variable]})
    _, shown = there.terminal("journal", "list", columns=120).finish()
    assert "\x1b" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "resource_id"),
    [(("tx", "get", LONG_ID), LONG_ID), (("journal", "list"), LONG_ID), (("journal", "show", "j1"), "tx_7K2M9QHD")],
)
def test_ids_are_complete_at_every_width(
    program: Program, serve: Serve, words: tuple[str, ...], resource_id: str
) -> None:
    there, cut = wide(program, serve, resource_id), {}
    for columns in (20, 40, 57, 80, 100, 133, 200):
        code, shown = there.with_environ(COLUMNS=str(columns)).terminal(*words, columns=columns).finish()
        assert code == 0
        if resource_id not in shown:
            cut[columns] = plain(shown)
    assert cut == {}
    assert resource_id in there.with_environ(COLUMNS="20").run(*words).out


COLUMNS = ("ENTRY", "SENT", "OPERATION", "STATE", "AMOUNT", "CURRENCY", "ID", "REFERENCE", "PROFILE")
REFERENCE = "order-8841/2026-11/acme"


def wide(program: Program, serve: Serve, resource_id: str = "tx_7K2M9QHD") -> Program:
    """The program after a create with a long reference at a service of a long name."""
    reply = CREATED.replace(b"tx_7K2M9QHD", resource_id.encode()).replace(b"100", b"1284000.50")
    there = program.at(serve(answering(http_reply("200 OK", reply))))
    create = ("tx", "create", "--amount", "1284000.50", "--currency", "USD", "--reference", REFERENCE)
    assert there.run(*create).code == 0
    return there


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "hidden"), [(80, {"PROFILE", "REFERENCE"}), (120, set())])
def test_list_that_is_too_wide_drops_columns_and_names_them(
    program: Program, serve: Serve, columns: int, hidden: set[str]
) -> None:
    code, shown = wide(program, serve).terminal("journal", "list", columns=columns).finish()
    first, row, *notes = plain(shown).splitlines()
    assert (code, set(COLUMNS) - set(first.split())) == (0, hidden)
    assert ["profile, reference" in note for note in notes] == [True] * bool(hidden)
    assert max(map(len, (first, row))) <= columns
    assert {"j1", "create", "done", "1284000.50", "USD", "tx_7K2M9QHD"} <= set(row.split())


@pytest.mark.slow
def test_selected_columns_are_shown_at_any_width(program: Program, serve: Serve) -> None:
    words = ("journal", "list", "--fields", "entry,id,amount,currency,reference,profile")
    code, shown = wide(program, serve, LONG_ID).terminal(*words, columns=80).finish()
    first, *rows = plain(shown).splitlines()
    assert (code, first.split()) == (0, ["ENTRY", "ID", "AMOUNT", "CURRENCY", "REFERENCE", "PROFILE"])
    assert {"j1", LONG_ID, "1284000.50", "USD"} <= set(rows[0].split())


@pytest.mark.representative("80-words0", "200-words2")
@pytest.mark.parametrize("words", [("journal", "list"), ("tx", "list"), ("webhook", "list")])
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_every_list_line_fits_and_long_ids_are_complete(
    program: Program, serve: Serve, columns: int, words: tuple[str, ...]
) -> None:
    there = wide(program, serve, LONG_ID)
    items = b"""[{"id":"%s","status":"held","amount":1284000.50,"currency":"USD","created_at":"2026-11-20T03:12:44Z",
      "url":"https://hooks.example.net/escrow/events/of/a/long/path/that/goes/on","events":["transaction.created"]}]"""
    listed = serve(answering(http_reply("200 OK", items % LONG_ID.encode())))
    _, shown = (there if words[0] == "journal" else there.at(listed)).terminal(*words, columns=columns).finish()
    lines = [line for line in plain(shown).splitlines() if not line.startswith("note:")]
    assert max(map(len, lines)) <= columns
    assert sum(LONG_ID in line for line in lines) == 1


@pytest.mark.slow
def test_empty_list_is_reported_at_a_terminal_only(program: Program, serve: Serve) -> None:
    there = program.at(serve(answering(http_reply("200 OK", b"[]"))))
    for words in (("webhook", "list"), ("journal", "list")):
        assert "nothing was found" in there.terminal(*words).finish()[1]
    assert there.terminal("webhook", "list", "-q").finish() == (0, "")
    piped = there.run("webhook", "list")
    assert (piped.code, piped.out, piped.err) == (0, "", "")
