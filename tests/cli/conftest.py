"""Fixtures of the command-line tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import Behave, WireServer

from cli.replies import entry_of, holding

Journal = Callable[..., list[tuple[str, str]]]
Profile = Callable[..., WireServer]


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


@pytest.fixture
def profile(serve: Serve, write_config: Callable[[str], Path], home: Path) -> Profile:
    """Write a profile `a` with these lines for a server that behaves like this, and make it the default."""

    def write(*lines: str, behave: Behave | None = None) -> WireServer:
        server = serve(behave or holding())
        text = "\n".join(lines)
        write_config(
            f'default_profile = "a"\n[profiles.a]\nbase_url = "{server.base_url}"\napi_key_file = "a.key"\n{text}\n'
        )
        (home / "a.key").write_text(KEY)
        (home / "a.key").chmod(0o600)
        return server

    return write


@pytest.fixture
def retrying_service_and_run(profile: Profile, run: Run) -> ServiceAndRun:
    """As `service_and_run`, with a profile whose service refuses throttled requests before it processes them."""

    def start(behave: Behave) -> tuple[WireServer, Run]:
        return profile("retry_throttled = true", behave=behave), run

    return start
