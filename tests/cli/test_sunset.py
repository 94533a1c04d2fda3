"""A call with an announced end: reported once in a run."""

import pytest
from conftest import ServiceAndRun
from wire_server import Behave

from cli.replies import HELD, json_reply

TWICE = ("tx", "get", "tx_1", "tx_1")


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (("Deprecation: @1688169599",), "is deprecated since 2023-06-30"),
        (("Sunset: Wed, 31 Dec 2026 23:59:59 GMT",), "will be removed on 2026-12-31"),
        (
            ("Deprecation: @1688169599", "Sunset: Wed, 31 Dec 2026 23:59:59 GMT"),
            "is deprecated since 2023-06-30 and will be removed on",
        ),
    ],
)
def test_sunset_header_is_reported_once(
    service_and_run: ServiceAndRun, headers: tuple[str, ...], sentence: str
) -> None:
    server, run = service_and_run(json_reply(HELD, "200 OK", *headers))

    result = run(*TWICE)

    assert result.code == 0
    assert result.err.count("warning: the service says that GET ") == 1
    assert f"{server.base_url}/api/v1/transactions/tx_1 {sentence}" in result.err


@pytest.mark.parametrize(
    "behave",
    [
        json_reply(HELD),
        json_reply(HELD, "200 OK", "Deprecation: true", "Sunset: soon"),
        json_reply(HELD, "200 OK", "Deprecation: @999999999999", "Sunset: Sat, 99 Nov 2026 03:00:00 GMT"),
    ],
)
def test_invalid_sunset_header_is_not_reported(service_and_run: ServiceAndRun, behave: Behave) -> None:
    _, run = service_and_run(behave)

    result = run(*TWICE)

    assert (result.code, "deprecated" in result.err, "removed" in result.err) == (0, False, False)
