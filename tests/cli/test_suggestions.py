"""A line that names no command: the one that was probably meant, and nothing that raises the question of money."""

import pytest
from conftest import Run


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("create tx", "escrowctl tx create"),
        ("-p acme transactions", "escrowctl -p acme tx list"),
        ("tx show tx_1 tx_2", "escrowctl tx get tx_1 tx_2"),
        ("tx creat", "escrowctl tx create"),
        ("release tx_1", "escrowctl tx release tx_1"),
        ("hlep", "escrowctl help"),
        ("tx list --output json", "escrowctl tx list --json"),
    ],
)
def test_unknown_command_suggests_the_line_that_was_meant(typed: str, meant: str, run: Run) -> None:
    result = run(*typed.split())

    assert (result.code, result.out) == (2, "")
    assert result.err.endswith(f": {meant}\n")
    assert run(*meant.split()[1:], "--help").code == 0


@pytest.mark.parametrize("typed", ["frobnicate", "tx frobnicate"])
def test_word_that_is_near_nothing_leads_to_help(typed: str, run: Run) -> None:
    result = run(*typed.split())

    assert (result.code, result.out) == (2, "")
    path = " ".join(("escrowctl", *typed.split()[:-1]))
    assert result.err.endswith(f"hint: {path} --help\n")


@pytest.mark.parametrize("typed", ["login sk_live_0123456789abcdef", "get $(id) '"])
def test_suggestion_repeats_neither_what_may_be_a_key_nor_what_a_shell_would_run(typed: str, run: Run) -> None:
    hint = run(*typed.split(), "--json").error["hint"]

    assert not {"sk_live_0123456789abcdef", "$(id)", "'"} & set(hint.split())
