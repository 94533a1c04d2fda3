"""A journal on each adapter; a further adapter is one more fixture value."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from escrowctl.journal.journal import Journal
from escrowctl.journal.opening import open_journal
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.storage import JournalPlace, Storage
from storage import memory
from storage.postgres import ClockedPlace, Server, new_name
from storage.writes import Clock

Opener = Callable[[], Journal]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgres", marks=pytest.mark.slow)])
def opener(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opener]:
    """A function that opens the journal like another process, any number of times."""
    place: JournalPlace = SqlitePlace(folder := tmp_path / "state")
    if request.param == "memory":
        place = memory.MemoryPlace(folder)
    elif request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        folder.mkdir()
        place = ClockedPlace(server.create_journal(new_name()), folder)
    opened: list[Journal] = []

    def open_again() -> Journal:
        opened.append(open_journal(place, now=clock))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()
    memory.forget_all()


@pytest.fixture
def journal(opener: Opener) -> Journal:
    return opener()


@pytest.fixture
def storage(journal: Journal) -> Storage:
    return journal.storage


@pytest.fixture
def place(postgres: Server, tmp_path: Path) -> ClockedPlace:
    return ClockedPlace(postgres.create_journal(new_name()), tmp_path)


@pytest.fixture
def database(postgres: Server) -> Iterator[psycopg.Connection]:
    """A connection of an administrator."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection
