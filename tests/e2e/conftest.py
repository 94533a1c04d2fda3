"""What every test of the installed script may ask for."""

from pathlib import Path

import pytest

from e2e.script import Program, clean_environment


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The installed script with a fresh home and no configuration."""
    return Program(clean_environment(tmp_path / "home"))
