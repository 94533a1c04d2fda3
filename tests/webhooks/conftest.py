"""Fixtures of the harnesses about events."""

from pathlib import Path

import pytest
from e2e.script import Program, clean_environment
from webhook_sender import SECRET


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The installed script, with the signing secret in its environment."""
    return Program(clean_environment(tmp_path / "home") | {"ESCROWCTL_WEBHOOK_SECRET": SECRET})
