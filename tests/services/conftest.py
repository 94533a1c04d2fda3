"""The client of each variant."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run

from services.variants import VARIANTS, Client, serving_variant


@pytest.fixture(params=VARIANTS)
def client(request: pytest.FixtureRequest, home: Path, run: Run) -> Iterator[Client]:
    """A client of each variant; after the test its journal and the sandbox's ledger must agree."""
    with serving_variant(request.param, home, run) as served:
        yield served
        served.audit()
