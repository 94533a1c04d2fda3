"""What is shown, and in which form: tables that fold, values for scripts, CSV, nested records."""

import re
from pathlib import Path

import pytest
from conftest import Run, Serve, ServiceAndRun

from cli.conftest import Profile
from cli.replies import CREATE, held, json_reply

WIDTHS = (60, 72, 80, 100, 160)
_NARROWEST = 71
"""The width of totals whose headers are folded."""


def columns_at(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.representative("80", "60")
@pytest.mark.parametrize("width", WIDTHS)
def test_totals_tell_profiles_apart_at_every_width(
    width: int, profile: Profile, serve: Serve, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile()
    other = {"ESCROWCTL_BASE_URL": serve(held).base_url, "ESCROWCTL_API_KEY": "sk_test_fedcba9876543210"}
    assert [run(*CREATE).code, run(*CREATE, environ=other).code] == [0, 0]
    columns_at(width, monkeypatch)

    result = run("journal", "totals", "--color", "never", terminal=True)

    header, *rows = result.out.splitlines()
    assert "PROFILE" in result.out
    assert "no room" not in result.err
    assert {row.split()[1] for row in rows if row.startswith("20")} <= {"a", "127.0.0.1", "127.0.0."}
    assert len(header) <= max(width, _NARROWEST)


def test_column_that_alone_tells_rows_apart_is_never_hidden(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = '{"ref":"%s","status":"awaiting_the_deposit","amount":1284000.50,"currency":"USD","created_at":"%s"}'
    items = ",".join(item % (number, f"2026-11-2{number}T03:12:44Z") for number in (0, 1))
    _server, run = service_and_run(json_reply(f"[{items}]".encode()))
    columns_at(40, monkeypatch)

    result = run("tx", "list", "--color", "never", terminal=True)

    assert "CREATED" in result.out
    assert "no room" not in result.err


def test_points_of_all_amounts_are_below_each_other(profile: Profile, run: Run) -> None:
    profile()
    for amount in ("100", "12.5"):
        run("tx", "create", "--amount", amount, "--currency", {"100": "USD", "12.5": "EUR"}[amount])

    rows = run("journal", "totals", "--color", "never", terminal=True).out.splitlines()[1:]

    ends = [re.search(r" (12|100)(\.5|  ) ", row) for row in rows]
    assert len({found and found.end(1) for found in ends}) == 1
    assert None not in ends


def hint_of(called: tuple[str, ...], folder: Path, run: Run, *words: str) -> str:
    return run(*(words or CREATE), called=called, environ={"PATH": str(folder)}).err.splitlines()[1]


def test_hints_start_with_the_program_as_it_was_called(run: Run, tmp_path: Path) -> None:
    on_path, elsewhere = tmp_path / "bin" / "escrowctl", tmp_path / "my venv" / "escrowctl"
    for program in (on_path, elsewhere):
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    login = " auth login"

    assert hint_of((str(on_path),), on_path.parent, run).endswith(f":     escrowctl{login}")
    assert hint_of((str(elsewhere),), on_path.parent, run).endswith(f":     '{elsewhere}'{login}")
    assert hint_of((str(on_path),), tmp_path, run).endswith(f":     {on_path}{login}")
    assert hint_of(("python", "-m", "escrowctl"), on_path.parent, run).endswith(f":     python -m escrowctl{login}")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tx", "get", "tx_404"), "not_found"),
        (("user", "get", "tx_404"), "not_found"),
        (("tx", "release", "tx_404", "--yes"), "not_found"),
        (("tx", "update", "tx_404", "--data", "{}", "--yes"), "not_found"),
    ],
)
def test_error_has_the_id_that_was_typed(words: tuple[str, ...], code: str, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"detail":"no"}', "404 Not Found"))

    error = run(*words, "--json").error

    assert (error["code"], error["id"]) == (code, "tx_404")


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
