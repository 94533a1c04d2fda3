"""`sandbox set|magic|move|ledger`, and `sandbox reset --seed`: what an operator rehearses with."""

from pathlib import Path

import pytest
from conftest import Run

from cli.events import rows_of

CREATE = ("--sandbox", "tx", "create", "--currency", "USD", "--amount")


def create(run: Run, amount: str = "100") -> str:
    made = run(*CREATE, amount, "-q")
    assert made.code == 0, made.err
    return made.out.strip()


def test_set_counts_down_is_listed_and_is_cleared(run: Run) -> None:
    made = run("sandbox", "set", "fault.create=drop-reply,2x", "variant.fields=camel")
    run(*CREATE, "1")

    listed, shown = run("sandbox", "status", "--json").json["settings"], run("sandbox", "status").out

    assert made.out == "fault.create\tdrop-reply,2x\nvariant.fields\tcamel\n"
    assert listed == {"fault.create": "drop-reply,1x", "variant.fields": "camel"}
    assert "fault.create\tdrop-reply,1x\n" in shown
    run("sandbox", "set", "variant.created=201")
    # The first value of a variant removes it, as does `off`.
    left = run("sandbox", "set", "fault.create=off", "variant.created=200", "--json")
    assert left.json == {"variant.fields": "camel"}
    assert run("sandbox", "set", "--clear", "--json").json == {}
    assert run("sandbox", "status", "--json").json["settings"] == {}


def test_bad_setting_among_good_ones_sets_nothing(run: Run) -> None:
    assert run("sandbox", "set", "fault.create=500", "fault.get=503").code == 2

    assert run("sandbox", "status", "--json").json["settings"] == {}


def rehearse_with_chances(run: Run, seed: int) -> list[str]:
    """Create ten escrows of which some replies are dropped, and return what the sandbox has."""
    run("sandbox", "reset", "--yes", "--seed", str(seed))
    run("sandbox", "set", "fault.create=500,50%")
    codes = [str(run(*CREATE, str(number)).code) for number in range(1, 9)]
    run("sandbox", "set", "--clear")
    return [*codes, *run("--sandbox", "tx", "list", "-q").out.split()]


@pytest.mark.slow
def test_seed_repeats_ids_and_chances(run: Run) -> None:
    first = rehearse_with_chances(run, 7)

    assert rehearse_with_chances(run, 7) == first
    assert {"0", "12"} <= set(first)


@pytest.mark.parametrize(
    ("amount", "code", "exists"), [("4.02", 8, 0), ("4.29", 9, 0), ("5.03", 12, 0), ("5.04", 12, 1), ("4.3", 0, 1)]
)
def test_magic_amount_has_its_outcome(amount: str, code: int, exists: int, run: Run) -> None:
    assert run(*CREATE, amount).code == code

    assert sum(run("sandbox", "status", "--json").json["transactions"].values()) == exists


def test_magic_amount_is_releasing_until_it_is_moved(run: Run) -> None:
    made = create(run, "2.02")

    released = run("--sandbox", "tx", "release", made, "--yes", "--json")
    moved = run("sandbox", "move", made, "released", "--json")

    assert (released.code, released.json["status_after"], released.json["verified"]) == (0, "releasing", False)
    assert (moved.json["status_before"], moved.json["status"]) == ("releasing", "released")
    assert run("sandbox", "ledger", "--check").code == 0


@pytest.mark.parametrize("status", ["disputed", "refunded", "released"])
def test_magic_id_reads_in_its_state_and_cannot_change(status: str, run: Run) -> None:
    name = f"tx_{status.upper()}"

    assert run("--sandbox", "tx", "get", name, "--json").json["status"] == status
    assert run("sandbox", "move", name, "held").code == 7
    assert run("--sandbox", "tx", "release", name, "--yes").code != 0
    assert run("sandbox", "magic", "-q").out.split()[-3:] == ["tx_DISPUTED", "tx_REFUNDED", "tx_RELEASED"]


def test_move_follows_the_states_and_moves_the_money(run: Run) -> None:
    made = create(run)

    codes = [
        run("sandbox", "move", made, status).code for status in ("disputed", "released", "held", "refunded", "held")
    ]

    assert codes == [0, 7, 0, 0, 7]
    assert run("--sandbox", "tx", "release", made, "--yes").code in (7, 8, 12)
    ledger = run("sandbox", "ledger", "--json").json
    assert [(one["move"], one["account"], one["amount"]) for one in ledger["entries"]] == [
        ("create", "payer:usr_PAYER001", -100),
        ("create", "hold", 100),
        ("refund", "hold", -100),
        ("refund", "payer:usr_PAYER001", 100),
    ]
    assert ledger["currencies"] == [{"currency": "USD", "entries": 4, "sum": 0, "held": 0, "balanced": True}]


def test_ledger_check_ends_with_16_where_money_was_created(run: Run, home: Path) -> None:
    create(run)
    assert run("sandbox", "ledger", "--check").out == "USD\t2\t0\t100\ttrue\n"
    change = "UPDATE transactions SET document = json_set(document, '$.amount', 1)"
    rows_of(home / "state" / "sandbox" / "sandbox.db", change)

    checked = run("sandbox", "ledger", "--check", "--json")

    assert (checked.code, checked.error["code"], checked.error["currencies"]) == (16, "check_failed", ["USD"])
