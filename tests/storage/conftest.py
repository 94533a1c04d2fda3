"""A journal on each adapter; a further adapter is one more fixture value."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from escrowctl.journal import opening
from escrowctl.journal.journal import Journal
from escrowctl.journal.storage import Locks, Storage
from storage import memory
from storage.writes import Clock

Opener = Callable[[], tuple[Storage, Locks]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opener]:
    """A function that opens the journal like another process, any number of times."""
    open_storage = opening.open_storage if request.param == "sqlite" else memory.open_storage
    opened: list[tuple[Storage, Locks]] = []

    def open_again() -> tuple[Storage, Locks]:
        opened.append(open_storage(tmp_path / "state", now=clock, reading=False))
        return opened[-1]

    yield open_again
    for storage, locks in opened:
        storage.close()
        locks.close()
    memory.forget_all()


@pytest.fixture
def storage(opener: Opener) -> Storage:
    return opener()[0]


@pytest.fixture
def journal(opener: Opener, tmp_path: Path) -> Journal:
    return journal_of(opener, tmp_path)


def journal_of(opener: Opener, folder: Path) -> Journal:
    storage, locks = opener()
    return Journal(storage, locks, folder=folder)
