"""A journal that is cut or altered anywhere: refused or recovered, never written twice, never a traceback."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.damage import FILES, KINDS, Damage, Damages, Replacement, whole
from faults.seeds import draw_seed

LONG_TURNS, SLICES = 5000, 8


@pytest.fixture
def damages(home: Path) -> Iterator[Damages]:
    # In memory where there is such a place: every sync would cost more than the command.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        made = Damages(Path(folder), draw_seed())
        try:
            whole(made)
            yield made
        finally:
            made.close()


@pytest.mark.representative("20")
@pytest.mark.parametrize("count", [20, 120])
def test_a_journal_cut_off_anywhere_lets_nothing_be_written_twice(damages: Damages, count: int) -> None:
    cuts = list(damages.cuts())
    pages = [cut for cut in cuts if cut.name == "journal.db" and cut.offset % 4096 in (0, 1, 4095)]
    damages.play_all([Damage("journal.db", 0), Damage("journal.head", 0), *damages.chance.sample(pages, 20)])
    damages.play_all(damages.chance.sample(cuts, count))


@pytest.mark.representative("20")
@pytest.mark.parametrize("count", [20, 160])
def test_a_journal_with_one_bit_turned_anywhere_lets_nothing_be_written_twice(damages: Damages, count: int) -> None:
    damages.play_all(damages.turns(count))


@pytest.mark.long
@pytest.mark.parametrize("part", range(SLICES))
def test_a_journal_cut_off_at_every_offset_lets_nothing_be_written_twice(damages: Damages, part: int) -> None:
    damages.play_all(list(damages.cuts())[part::SLICES])


@pytest.mark.long
def test_a_journal_with_any_of_five_thousand_bits_turned_lets_nothing_be_written_twice(damages: Damages) -> None:
    damages.play_all(damages.turns(LONG_TURNS))


def test_an_emptied_journal_beside_its_head_is_not_a_fresh_one(damages: Damages) -> None:
    before = damages.codes.copy()
    damages.play(Damage("journal.db", 0))

    assert damages.codes - before == {17: 3}


@pytest.mark.representative("nothing-*", "folder-*", "older-journal.db")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_gone_or_is_something_else_lets_nothing_be_written_twice(
    damages: Damages, name: str, kind: str
) -> None:
    before = damages.codes.copy()
    damages.play(Replacement(name, kind))

    told = damages.codes - before
    # A lock file holds nothing, and a head may lag.
    harmless = kind != "folder" if name == "journal.lock" else (name, kind) == ("journal.head", "older")
    assert told == ({7: 1, 12: 2} if harmless else {17: 3})


@pytest.mark.parametrize("name", [b"recordsrecords", b"kind TEXT NOT NULL,", b"latest TEXT NOT NULL"])
def test_a_schema_that_says_something_else_is_told_in_a_sentence(damages: Damages, name: bytes) -> None:
    damages.play(Damage("journal.db", damages.find(name), 7 if name == b"recordsrecords" else 0))


def test_facts_that_are_no_text_are_told_in_a_sentence(damages: Damages) -> None:
    # The last record's header, backwards from its kind: facts' serial type is two bytes, the digest's one.
    damages.play(Damage("journal.db", damages.find_last_facts_type(), 0))


def test_date_that_is_no_text_is_told_in_a_sentence(damages: Damages) -> None:
    damages.play(Damage("journal.db", damages.find_last_facts_type() - 2, 0))


@pytest.mark.usefixtures("in_time")
def test_the_damages_notice_a_program_that_believes_the_file(tmp_path: Path) -> None:
    seed, mark = draw_seed(), tmp_path / "broken-here"
    done = subprocess.run(
        [sys.executable, "-m", "faults.damage", "believes_the_file", str(tmp_path / "damages"), str(seed)],
        cwd=Path(__file__).parents[1],
        env={"PATH": os.defpath, "BROKEN_MARK": str(mark)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    print(done.stdout)

    assert done.stdout.splitlines()[-1] in ("noticed: SENT_TWICE", "noticed: BROKE")
    assert mark.exists()
