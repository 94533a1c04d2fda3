"""What every command-line test may ask for besides the run itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from cli.replies import entry_of

Journal = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def journal(run: Run) -> Journal:
    """Return (operation, state) of every journal entry, oldest first: what the journal says afterwards."""

    def read(*options: str) -> list[tuple[str, str]]:
        result = run(*options, "journal", "list", "--json")
        assert result.code == 0, result.err
        documents: list[dict[str, Any]] = result.json
        return [entry_of(document) for document in reversed(documents)]

    return read


@pytest.fixture
def write_config(home: Path) -> Callable[[str], Path]:
    """Write config.toml and return its path."""

    def write(text: str) -> Path:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = home / "config.toml"
        path.write_text(text)
        return path

    return write
