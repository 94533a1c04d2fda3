"""A disk that is full, failing, or read-only: nothing is sent without a durable intent, and all resumes."""

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faults.disks import Disk, small_disk
from faults.kills import MANNERS, Harness, Violation, ViolationError
from faults.seeds import draw_seed
from faults.sweep import CREATE, RELEASE, sweeping
from faults.tracing import READING, WRITING, Point, needs_strace

PAGE = 4096
LEVELS = [(pages * PAGE, used, verb) for pages in range(42) for used in (False, True) for verb in ("create", "release")]
"""Bytes left, whether the journal is there already, and what is tried: from nothing left to enough."""
NOTHING, THE_INTENT, ALL = (0, False, "create"), (23 * PAGE, False, "create"), (41 * PAGE, True, "create")
"""Levels with room for so much: exits 17, 12 and 0."""
NOTE = "x" * 20_000
"""What the service says takes more room than what it is asked: a disk may have room for the one alone."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


@pytest.fixture
def harness(disk: Disk, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(tmp_path / "template", draw_seed())
    made.measure()
    try:
        yield made
    finally:
        made.close()


def fill_to(levels: list[tuple[int, bool, str]], disk: Disk, harness: Harness) -> None:
    template, codes = harness.home, Counter[int]()
    for left, used, verb in levels:
        disk.clear()
        harness.home = disk.path / "home"
        harness.home.mkdir()
        if used:
            shutil.copytree(template, harness.home, dirs_exist_ok=True)
        disk.fill(leave=left)
        harness.witness.kind, harness.witness.note = "answer", NOTE
        harness.witness.applied.clear()
        line, likeness = CREATE if verb == "create" else RELEASE
        line = (*line, *harness.chance.choice(MANNERS))
        ended = harness.judge(line, likeness, lambda line=line: harness.run(line), between=disk.make_room)  # type: ignore[misc] # bound for B023
        assert ended.code in (0, 12, 17), ended
        assert harness.run(("journal", "list")).code == 0
        codes[ended.code] += 1
    print(f"ESCROWCTL_TEST_SEED={harness.seed}: {len(levels)} levels, exits {dict(codes)}")
    # Else the levels miss what they are meant for.
    assert set(codes) == {0, 12, 17}, codes


@pytest.mark.representative("3")
@pytest.mark.parametrize("count", [3, 6])
def test_on_a_disk_that_is_nearly_full_nothing_is_sent_without_an_intent_and_all_resumes(
    disk: Disk, harness: Harness, count: int
) -> None:
    fixed = [NOTHING, THE_INTENT, ALL]
    fill_to([*fixed, *random.Random(harness.seed).sample(LEVELS, count - len(fixed))], disk, harness)


@pytest.mark.long
def test_at_a_hundred_levels_of_a_full_disk_nothing_is_sent_without_an_intent_and_all_resumes(
    disk: Disk, harness: Harness
) -> None:
    fill_to(LEVELS, disk, harness)


def fail_at(folder: Path, verb: str, *, share: int | None, calls: frozenset[str] = WRITING) -> None:
    """Let such calls fail, once or from then on: `share` of all such, or every one."""
    with sweeping(folder, verb) as swept:
        points = [point for point in swept.points() if point.call in calls]
        # Fewer would say that the trace misses what it is meant for; these are made for new files alone.
        assert calls - {"write", "fsync", "fchmod"} <= {point.call for point in points}
        faults = [
            (chosen, f"error={error}")
            for point in points
            for error in ("EIO", "ENOSPC")
            for chosen in (point, replace(point, onwards=True))
        ]
        if share is not None:
            # Of the many writes and the few syncs alike.
            rare = [fault for fault in faults if fault[0].call not in ("pwrite64", "newfstatat", "pread64")]
            chance = swept.harness.chance
            faults = [*chance.sample(rare, share // 2), *chance.sample(faults, share - share // 2)]
        # Each in one manner, or each in both.
        manners: tuple[tuple[str, ...] | None, ...] = (None,) if share is not None else MANNERS
        for (point, fault), manner in itertools.product(faults, manners):
            ended = swept.play(point, fault, manner=manner)
            assert ended.code in (0, 12, 17), (point, fault, ended)
        print(f"{verb}: {len(faults)} faults at {len(points)} calls")


@pytest.mark.thorough
@needs_strace
@pytest.mark.parametrize("verb", ["create", "release"])
def test_a_write_or_sync_that_fails_leaves_nothing_sent_without_an_intent(tmp_path: Path, verb: str) -> None:
    fail_at(tmp_path, verb, share=4)


@pytest.mark.long
@needs_strace
@pytest.mark.parametrize("verb", ["create", "release"])
def test_every_write_and_sync_that_can_fail_leaves_nothing_sent_without_an_intent(tmp_path: Path, verb: str) -> None:
    fail_at(tmp_path, verb, share=None)


@pytest.mark.thorough
@needs_strace
@pytest.mark.parametrize("verb", ["create", "release"])
def test_a_file_that_cannot_be_opened_or_read_is_told_in_a_sentence(tmp_path: Path, verb: str) -> None:
    fail_at(tmp_path, verb, share=4, calls=READING)


@pytest.mark.long
@needs_strace
@pytest.mark.parametrize("verb", ["create", "release"])
def test_every_open_and_read_that_can_fail_is_told_in_a_sentence(tmp_path: Path, verb: str) -> None:
    fail_at(tmp_path, verb, share=None, calls=READING)


@pytest.mark.thorough
@needs_strace
@pytest.mark.parametrize("call", ["fcntl", "close"])
def test_a_lock_that_cannot_be_taken_or_given_back_is_told_in_a_sentence(tmp_path: Path, call: str) -> None:
    with sweeping(tmp_path, "release") as swept:
        swept.names = ("journal.lock",)
        points = [point for point in swept.points() if point.call == call]
        assert points
        for point in points:
            swept.play(point, "error=ENOLCK" if call == "fcntl" else "error=EIO")


@needs_strace
def test_a_create_that_was_told_as_unknown_is_held_back_whatever_sync_failed(tmp_path: Path) -> None:
    with sweeping(tmp_path, "create") as swept:
        last = [point for point in swept.points() if point.call == "fdatasync"][-1]
        swept.play(last, "error=EIO")


@pytest.mark.thorough
@needs_strace
def test_an_accepted_release_is_told_as_accepted_though_what_its_reading_showed_cannot_be_recorded(
    tmp_path: Path,
) -> None:
    with sweeping(tmp_path, "release") as swept:
        points = swept.points()
        syncs, ends = ([one for one in points if one.call == call] for call in ("fdatasync", "ftruncate"))
        # The intent, the outcome, what reading it back showed: three commits alike.
        assert (len(syncs) % 3, len(ends)) == (0, 3)
        first = syncs[2 * len(syncs) // 3]
        for point, manner in zip((first, replace(first, onwards=True), ends[-1]), (*MANNERS, ()), strict=True):
            ended = swept.play(point, "error=EIO", manner=manner)
            assert ended.code == 0, (point, ended)


@needs_strace
@pytest.mark.usefixtures("in_time")
def test_a_failing_sync_shows_a_program_that_goes_on_after_it(tmp_path: Path) -> None:
    with sweeping(tmp_path, "release", variant="goes_on_after_a_failed_commit") as swept:
        with pytest.raises(ViolationError) as noticed:
            swept.play(Point("fdatasync", 1, onwards=True), "error=EIO")
        # It kept a head that the journal does not have.
        assert (noticed.value.kind, swept.harness.mark.exists()) == (Violation.DAMAGED, True)


@pytest.mark.thorough
def test_on_a_read_only_disk_everything_can_be_read_and_nothing_is_sent(disk: Disk, harness: Harness) -> None:
    template = harness.home
    harness.home = disk.path / "home"
    shutil.copytree(template, harness.home)
    harness.witness.kind = "answer"
    before = list(harness.witness.applied)
    with disk.read_only():
        writes = [harness.run(line) for line in (CREATE[0], RELEASE[0])]
        reads = [harness.run(line) for line in (("journal", "list"), ("journal", "show", "j1"), ("tx", "get", "tx_1"))]

    assert [ended.code for ended in writes] == [17, 17]
    for ended in writes:
        assert (ended.out, ended.err.count("Nothing was sent."), "Traceback" in ended.err) == ("", 1, False), ended
    assert [(ended.code, ended.err) for ended in reads] == [(0, ""), (0, ""), (0, "")]
    assert "create_transaction" in reads[0].out + reads[1].out
    assert harness.witness.applied == before
    assert [harness.run(line).code for line in (CREATE[0], RELEASE[0])] == [0, 0]


def test_a_home_that_cannot_be_made_sends_nothing(disk: Disk, harness: Harness) -> None:
    harness.home = disk.path / "home"
    before = list(harness.witness.applied)
    with disk.read_only():
        ended = [harness.run(line) for line in (CREATE[0], RELEASE[0], ("journal", "list"), ("tx", "get", "tx_1"))]

    assert [one.code for one in ended] == [17, 17, 0, 0], ended
    assert harness.witness.applied == before
