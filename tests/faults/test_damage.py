"""A journal that is cut or altered anywhere: refused or recovered, never written twice, never a traceback."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.damage import FILES, KINDS, REFUSED, UNDAMAGED, Damage, Damages, Replacement, run_undamaged
from faults.seeds import draw_seed

LONG_TURNS, SLICES = 5000, 8


@pytest.fixture
def damages(home: Path) -> Iterator[Damages]:
    # In memory where there is such a place: every sync would cost more than the command.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        made = Damages(Path(folder), draw_seed())
        try:
            run_undamaged(made)
            yield made
        finally:
            made.close()


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 120])
def test_truncated_journal_prevents_second_writes(damages: Damages, count: int) -> None:
    cuts = list(damages.cuts())
    pages = [cut for cut in cuts if cut.name == "journal.db" and cut.offset % 4096 in (0, 1, 4095)]
    damages.play_all([Damage("journal.db", 0), Damage("journal.head", 0), *damages.chance.sample(pages, 20)])
    damages.play_all(damages.chance.sample(cuts, count))


@pytest.mark.representative("20")
@pytest.mark.parametrize("count", [20, 160, pytest.param(LONG_TURNS, marks=pytest.mark.long)])
def test_journal_with_a_flipped_bit_prevents_second_writes(damages: Damages, count: int) -> None:
    damages.play_all(damages.turns(count))


@pytest.mark.long
@pytest.mark.parametrize("part", range(SLICES))
def test_journal_truncated_at_every_offset_prevents_second_writes(damages: Damages, part: int) -> None:
    damages.play_all(list(damages.cuts())[part::SLICES])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_missing_or_replaced_journal_file_prevents_second_writes(damages: Damages, name: str, kind: str) -> None:
    before = damages.codes.copy()
    damages.run_with_damage(Replacement(name, kind))

    told = damages.codes - before
    # A lock file holds nothing, and a head may lag.
    harmless = kind != "folder" if name == "journal.lock" else (name, kind) == ("journal.head", "older")
    assert told == (UNDAMAGED if harmless else REFUSED)


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"recordsrecords", b"kind TEXT NOT NULL,", b"latest TEXT NOT NULL"])
def test_changed_schema_is_reported_in_a_sentence(damages: Damages, name: bytes) -> None:
    damages.run_with_damage(Damage("journal.db", damages.find(name), 7 if name == b"recordsrecords" else 0))


@pytest.mark.parametrize("name", [b"keys", b"totals"])
def test_table_that_is_looked_for_on_another_page_is_damage(damages: Damages, name: bytes) -> None:
    before = damages.codes.copy()
    # A row of the schema ends `table NAME NAME page text`: the page becomes its neighbour's, where no row matches.
    damages.run_with_damage(Damage("journal.db", damages.find(b"table" + 2 * name) + 5 + 2 * len(name), 0))

    assert damages.codes - before == REFUSED


def test_facts_or_date_of_another_type_are_reported_in_a_sentence(damages: Damages) -> None:
    # The last record's header, backwards from its kind: facts' serial type is two bytes, the digest's one.
    for before in (0, 2):
        damages.run_with_damage(Damage("journal.db", damages.find_last_facts_type() - before, 0))


def test_changed_date_is_damage_and_not_an_old_clock(damages: Damages) -> None:
    # The last digit of the year of the last record's date: 2022 in the place of 2026.
    damages.run_with_damage(Damage("journal.db", damages.find_last_date() + 3, 2))


def test_changed_total_is_found_by_verify(damages: Damages) -> None:
    changes, before = list(damages.changed_totals()), damages.codes.copy()
    damages.play_all(changes)

    assert (len(changes), damages.codes) == (2, before)


@pytest.mark.slow
@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize(
    ("variant", "kinds"), [("believes_the_file", {"SENT_TWICE", "BROKE"}), ("verifies_the_chain_alone", {"SENT_TWICE"})]
)
def test_the_damages_notice_a_program_that_believes_the_file(tmp_path: Path, variant: str, kinds: set[str]) -> None:
    seed, mark = draw_seed(), tmp_path / "broken-here"
    done = subprocess.run(
        [sys.executable, "-m", "faults.damage", variant, str(tmp_path / "damages"), str(seed)],
        cwd=Path(__file__).parents[1],
        env={"PATH": os.defpath, "BROKEN_MARK": str(mark)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    print(done.stdout)

    assert done.stdout.splitlines()[-1].removeprefix("noticed: ") in kinds
    assert mark.exists()
