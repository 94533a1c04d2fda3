"""The races of `test_races`, on eight machines that share a journal in a database."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from storage.postgres import Server, new_name

from faults.races import Course, Races, Starter
from faults.seeds import draw_seed
from faults.test_races import CAPPED, ONE, starter

__all__ = ["starter"]

SHORT, LONG = 4, 200
ROUNDS = [pytest.param(SHORT, marks=pytest.mark.slow), pytest.param(LONG, marks=pytest.mark.long)]

StartRaces = Callable[[Course], Races]


@pytest.fixture
def start(postgres: Server, tmp_path: Path, starter: Starter) -> Iterator[StartRaces]:
    """Start races on journals of this server."""

    def make_journal() -> str:
        name = new_name()
        postgres.create_journal(name)
        return f"{postgres.journals_url}?journal={name}"

    with contextlib.ExitStack() as stack:

        def start_races(through: Course) -> Races:
            run = Races(tmp_path, draw_seed(), through, starter, make_journal=make_journal)
            stack.callback(run.close)
            return run

        yield start_races


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("race", [Races.release, Races.create_under_one_reference])
def test_eight_machines_write_once(start: StartRaces, race: Callable[[Races], object], rounds: int) -> None:
    run = start(ONE)
    for _ in range(rounds):
        race(run)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_eight_machines_stay_under_one_cap(start: StartRaces, rounds: int) -> None:
    run = start(CAPPED)
    run.renews = True
    for _ in range(rounds // 2):
        run.create_under_cap(250)
