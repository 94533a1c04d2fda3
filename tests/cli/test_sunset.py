"""A call with an announced end: reported once in a run."""

import pytest
from conftest import ServiceAndRun

from cli.replies import HELD, json_reply

TWICE = ("tx", "get", "tx_1", "tx_1")


@pytest.mark.parametrize(
    ("headers", "date"),
    [(("Deprecation: @1688169599",), "2023-06-30"), (("Sunset: Wed, 31 Dec 2026 23:59:59 GMT",), "2026-12-31")],
)
def test_sunset_header_is_reported_once(service_and_run: ServiceAndRun, headers: tuple[str, ...], date: str) -> None:
    _, run = service_and_run(json_reply(HELD, "200 OK", *headers))

    result = run(*TWICE)

    assert (result.code, result.err.count("warning: "), result.err.count(date)) == (0, 1, 1)


def test_invalid_sunset_header_is_not_reported(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD, "200 OK", "Deprecation: @999999999999", "Sunset: Sat, 99 Nov 2026"))

    result = run(*TWICE)

    assert (result.code, result.err) == (0, "")
