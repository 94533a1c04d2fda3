"""What is shown, and in which form: tables that fold, values for scripts, CSV, nested records."""

from pathlib import Path

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import hang_up

from cli.replies import CREATE, json_reply


def hint_of(called: tuple[str, ...], folder: Path, run: Run) -> str:
    return run(*CREATE, program_words=called, environ={"PATH": str(folder)}).err.splitlines()[1]


def test_hints_start_with_the_program_as_it_was_called(run: Run, tmp_path: Path) -> None:
    on_path, elsewhere = tmp_path / "bin" / "escrowctl", tmp_path / "my venv" / "escrowctl"
    for program in (on_path, elsewhere):
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    login = " auth login"

    assert hint_of((str(on_path),), on_path.parent, run).endswith(f":     escrowctl{login}")
    assert hint_of((str(elsewhere),), on_path.parent, run).endswith(f":     '{elsewhere}'{login}")
    assert hint_of(("python", "-m", "escrowctl"), on_path.parent, run).endswith(f":     python -m escrowctl{login}")


def test_hints_lead_to_the_journal_and_to_the_service(serve: Serve, run: Run, tmp_path: Path) -> None:
    at = {"ESCROWCTL_BASE_URL": serve(hang_up).base_url}
    disk = {"ESCROWCTL_HOME": str(tmp_path / "a disk"), "ESCROWCTL_API_KEY": KEY} | at
    leading = f"ESCROWCTL_HOME='{tmp_path}/a disk' escrowctl"

    unknown = run(*CREATE, "--json", environ=disk).error
    profile = disk | {"ESCROWCTL_PROFILE": "acme"}
    chosen = run("config", "get", "api_key", "--json", environ=profile, without=("ESCROWCTL_BASE_URL",)).error

    assert unknown["hint"].endswith(f" ESCROWCTL_BASE_URL={at['ESCROWCTL_BASE_URL']} {leading} journal resolve j1")
    assert chosen["hint"].endswith(f" ESCROWCTL_PROFILE=acme {leading} config list")


def test_error_has_the_id_of_the_record_that_it_is_about(run: Run) -> None:
    create = ("--sandbox", *CREATE, "--reference", "r1")
    made = run(*create, "-q").out.strip()
    release = ("--sandbox", "tx", "release", made, "--yes", "--json")
    errors = [run(*create, "--json").error, run(*release, "--expect-amount", "1").error]
    assert run(*release).code == 0

    errors.append(run(*release).error)

    assert [(error["code"], error["id"]) for error in errors] == [
        ("reference_reused", made),
        ("expectation_failed", made),
        ("already_done", made),
    ]


LISTED = b"""[{"id":"tx_1","status":"held","amount":100.00,"currency":"USD","note":"=1+1"},
 {"id":"tx_2","status":"=held","amount":5,"currency":"EUR"}]"""
CSV = "id,status,amount,currency,created\ntx_1,held,100.00,USD,\ntx_2,'=held,5,EUR,\n"


def test_list_is_csv_with_a_header(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(LISTED))

    listed = [run("tx", "list", "--csv"), run("api", "GET", "/transactions", "--csv")]
    chosen = run("tx", "list", "--csv", "--fields", "amount,id")

    assert {result.out for result in listed} == {CSV}
    assert chosen.out == "amount,id\n100.00,tx_1\n5,tx_2\n"


def test_record_is_csv_of_one_row(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"tx_1","amount":{"value":"1.50"},"note":"a, b"}'))

    assert run("tx", "get", "tx_1", "--csv").out == 'id,amount.value,note\ntx_1,1.50,"a, b"\n'
    assert run("tx", "get", "tx_1", "--csv", "--fields", "amount,id").out == "amount,id\n1.50,tx_1\n"


def test_table_in_a_pipe_is_that_of_a_terminal_without_colour(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _server, run = service_and_run(json_reply(LISTED))
    widths = []
    piped, shown = run("tx", "list", "--table"), run("tx", "list", "--color", "never", terminal=True)
    assert (piped.out, piped.code) == (shown.out, shown.code)
    run("tx", "create", "--amount", "1", "--currency", "USD", "--reference", "r" * 200)
    for width in (60, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        widths.append(max(map(len, run("journal", "list", "--table").out.splitlines())))
    assert widths[0] <= 60 < widths[1] <= 120


@pytest.mark.parametrize("other", ["--json", "--raw", "-q", "--table"])
def test_two_forms_of_output_are_refused(other: str, run: Run) -> None:
    results = [run("journal", "list", "--csv", other), run(other, "journal", "list", "--csv")]

    assert [(result.code, result.out) for result in results] == [(2, "")] * 2


NESTED = b"""{"id":"tx_1","amount":{"value":"1.50","currency":"EUR"},"tags":["a","b, c"],"none":[],
 "legs":[{"to":"usr_1","amount":"1.5"},{"to":"usr_2","amount":"100","fee":2}],
 "parties":[{"name":"Ann","roles":[{"role":"payer"}]}]}"""


def test_nested_record_is_indented_lines_and_tables_at_a_terminal(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(NESTED))

    shown = run("tx", "get", "tx_1", "--color", "never", terminal=True).out

    assert shown.splitlines() == [
        "id          tx_1",
        "amount",
        "  value     1.50",
        "  currency  EUR",
        "tags        a, b, c",
        "none        []",
        "legs        to     amount  fee",
        "            usr_1     1.5",
        "            usr_2   100    2",
        "parties",
        "  0",
        "    name    Ann",
        "    roles   role",
        "            payer",
    ]
