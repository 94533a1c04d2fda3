"""Behind a proxy that sends writes twice: escrowctl sends each write once, and does not report a 409 as refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Result, Run

from faults.proxies import PROXIES, Service, find_program, proxied

pytestmark = pytest.mark.slow

STATUSES = ("200 OK", "400 No", "409 No", "422 No", "425 No", "429 No", "500 No", "503 No")
CREATE = ("tx", "create", "--amount", "100", "--currency", "USD", "--json")
CREATE_CODES = list(zip(STATUSES, (0, 8, 12, 8, 9, 9, 12, 12), strict=True))
RELEASE = ("tx", "release", "tx_1", "--yes", "--json")

ProxiedService = Callable[..., Any]


@pytest.fixture(params=sorted(PROXIES))
def proxied_service(request: pytest.FixtureRequest, run: Run, home: Path, tmp_path: Path) -> ProxiedService:
    """Return what starts a service behind a proxy, for a profile with these lines, and runs a line against it."""
    name: str = request.param
    if find_program(name) is None:
        pytest.skip(f"{name} is not installed")

    def start(service: Service, *lines: str) -> Any:
        def run_lines(*commands: tuple[str, ...]) -> list[Result]:
            with proxied(name, service, tmp_path) as url:
                home.mkdir(mode=0o700, parents=True, exist_ok=True)
                more = "\n".join(lines)
                config = f'[profiles.p]\nbase_url = "{url}"\nstatus.released = ["released"]\n{more}\n'
                (home / "config.toml").write_text(config)
                (home / "config.toml").chmod(0o600)
                environ = {"ESCROWCTL_PROFILE": "p", "ESCROWCTL_API_KEY": KEY, "ESCROWCTL_BASE_URL": url}
                return [run(*command, environ=environ) for command in commands]

        return run_lines

    return start


@pytest.mark.parametrize(("status", "code"), CREATE_CODES)
def test_create_is_sent_once_through_a_repeating_proxy(proxied_service: ProxiedService, status: str, code: int) -> None:
    service = Service(status)

    (result,) = proxied_service(service)(CREATE)

    assert (result.code, len(service.requests), len(service.made)) == (code, 1, 1), result.err


@pytest.mark.parametrize(("status", "code"), list(zip(STATUSES, (0, 0, 0, 0, 9, 9, 0, 0), strict=True)))
def test_release_is_sent_once_and_settled_by_its_reading(
    proxied_service: ProxiedService, status: str, code: int
) -> None:
    service = Service(status)

    first, again = proxied_service(service)(RELEASE, RELEASE)

    assert (first.code, again.code, len(service.requests), service.released) == (code, 7, 1, 1), first.err


@pytest.mark.parametrize("status", ["425 No", "429 No"])
def test_throttled_create_is_resent_only_when_the_profile_allows(proxied_service: ProxiedService, status: str) -> None:
    service = Service(status)

    (result,) = proxied_service(service, "retry_throttled = true")(CREATE)

    assert (result.code, len(service.requests)) == (9, 3)


@pytest.mark.parametrize("profile", [(), ('idempotency = "header"',)], ids=["once", "deduplicating"])
@pytest.mark.parametrize(("status", "code"), CREATE_CODES)
def test_line_repeated_with_its_key_makes_one_escrow(
    proxied_service: ProxiedService, status: str, code: int, profile: tuple[str, ...]
) -> None:
    service = Service(status, deduplicates=True)
    keyed = (*CREATE, "--idempotency-key", "order-1")

    results = proxied_service(service, *profile)(keyed, keyed, keyed)

    assert len(service.made) == 1, [result.err for result in results]
    assert [result.code for result in results] == [code] * 3
    if not profile:
        assert len(service.requests) == 1
