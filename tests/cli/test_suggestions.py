"""A line that names no command: the one that was probably meant, and nothing that raises the question of money."""

import pytest
from conftest import Run


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("create tx", "escrowctl tx create"),
        ("get tx_1", "escrowctl tx get tx_1"),
        ("transactions", "escrowctl tx list"),
        ("-p acme transactions", "escrowctl -p acme tx list"),
        ("tx show tx_1 tx_2", "escrowctl tx get tx_1 tx_2"),
        ("tx creat", "escrowctl tx create"),
        ("release tx_1", "escrowctl tx release tx_1"),
        ("journal get j12", "escrowctl journal show j12"),
        ("batch creat ../payouts-2.csv", "escrowctl batch create ../payouts-2.csv"),
        ("profiles", "escrowctl auth status"),
        ("hlep", "escrowctl help"),
    ],
)
def test_unknown_command_suggests_the_line_that_was_meant(typed: str, meant: str, run: Run) -> None:
    result = run(*typed.split(), "--json")

    assert (result.code, result.out) == (2, "")
    assert result.error["hint"] == f"did you mean: {meant}"
    assert "sent" not in result.error["message"]
    assert run(*meant.split()[1:], "--help").code == 0


def test_suggested_login_is_without_the_sandbox_that_refuses_it(run: Run) -> None:
    assert run("--sandbox", "login", "--json").error["hint"] == "did you mean: escrowctl auth login"


@pytest.mark.parametrize("typed", ["frobnicate", "tx frobnicate", "webhook secret"])
def test_word_that_is_near_nothing_leads_to_help(typed: str, run: Run) -> None:
    result = run(*typed.split())

    assert (result.code, result.out) == (2, "")
    path = " ".join(("escrowctl", *typed.split()[:-1]))
    assert result.err == f'error: there is no command "{typed}".\nhint: {path} --help\n'


def test_option_without_its_value_leads_to_the_help_of_its_command(run: Run) -> None:
    result = run("tx", "list", "--local", "--over", "--json")

    assert (result.code, result.out) == (2, "")
    assert run("tx", "list", "--over").err.endswith("hint: escrowctl tx list --help\n")


@pytest.mark.parametrize("typed", ["login sk_live_0123456789abcdef", "get $(id) '"])
def test_suggestion_repeats_neither_what_may_be_a_key_nor_what_a_shell_would_run(typed: str, run: Run) -> None:
    hint = run(*typed.split(), "--json").error["hint"]

    assert hint.startswith("did you mean: escrowctl ")
    assert not {"sk_live_0123456789abcdef", "$(id)", "'"} & set(hint.split())


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("tx list --output json", "did you mean: escrowctl tx list --json"),
        ("tx get tx_1 -o json -q", "did you mean: escrowctl tx get tx_1 --json -q"),
        ("--output=json -p acme tx list", "did you mean: escrowctl --json -p acme tx list"),
        ("tx list --output table", "escrowctl help options"),
        ("tx list -o", "escrowctl help options"),
    ],
)
def test_output_option_of_other_programs_suggests_json(typed: str, hint: str, run: Run) -> None:
    result = run(*typed.split())

    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1] == f"hint: {hint}"


@pytest.mark.parametrize("typed", ["version --nonsense", "help nothing", "config get x", "config set"])
def test_line_that_never_sends_does_not_say_that_nothing_was_sent(typed: str, run: Run) -> None:
    result = run(*typed.split())

    assert result.code == 2
    assert "sent" not in result.err


def test_line_of_a_write_still_says_that_nothing_was_sent(run: Run) -> None:
    assert "Nothing was sent." in run("tx", "create", "--nonsense").err
