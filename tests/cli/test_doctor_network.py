"""`escrowctl doctor` and the way to the service: clock, name, connection, proxy, certificate."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from conftest import KEY, NOW, Run, Serve
from wire_server import Behave, answering, http_reply, say_nothing

from cli.conftest import Profile
from cli.replies import break_off
from cli.test_doctor import DATE, check, checks, failed, service
from cli.test_tls import TlsServer


@pytest.mark.parametrize(("seconds", "verdict"), [(45, "ok"), (-90, "warning")])
def test_clock_is_compared_with_the_date_of_the_reply(seconds: int, verdict: str, profile: Profile, run: Run) -> None:
    profile(behave=answering(http_reply("200 OK", b"[]", DATE)))

    result = run("doctor", now=lambda: NOW + timedelta(seconds=seconds))

    assert (result.code, checks(result)["clock"]) == (0, verdict)


def test_host_without_an_address_and_closed_port_are_named(serve: Serve, run: Run) -> None:
    server = serve(service())
    server.close()
    urls = ("https://nosuch.invalid", server.base_url)

    results = [run("doctor", environ={"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY}) for url in urls]

    assert [(result.code, failed(result)) for result in results] == [(16, ["dns"]), (16, ["tcp"])]
    assert [checks(results[0])[name] for name in ("tcp", "access", "locks")] == ["skipped", "skipped", "ok"]


@pytest.mark.parametrize("behave", [break_off, say_nothing])
def test_service_that_accepts_and_does_not_answer_fails_access(behave: Behave, profile: Profile, run: Run) -> None:
    profile(behave=behave)

    result = run("doctor", "--timeout", "0.2")

    assert (result.code, failed(result), checks(result)["tcp"]) == (16, ["access"], "ok")


@pytest.fixture
def proxy(serve: Serve) -> dict[str, str]:
    """Environment of a service behind a proxy that refuses every connection."""
    server = serve(answering(http_reply("403 Forbidden")))
    return {
        "ESCROWCTL_BASE_URL": "https://escrow.example.com",
        "ESCROWCTL_API_KEY": KEY,
        "HTTPS_PROXY": f"http://robot:s3cr3t@127.0.0.1:{server.port}",
    }


def test_refusing_proxy_is_named_without_its_password(proxy: dict[str, str], run: Run) -> None:
    result = run("doctor", environ=proxy)

    assert (result.code, failed(result)) == (16, ["tcp"])
    assert "HTTPS_PROXY" in check(result, "tcp")["finding"]
    assert "s3cr3t" not in result.out + result.err


def tls_service(authority: trustme.CA, ends: datetime) -> TlsServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", not_after=ends).configure_cert(context)
    return TlsServer(context, ends_with=b"\r\n\r\n")


@pytest.mark.parametrize(
    ("issuer", "days", "verdict"), [("trusted", 90, "ok"), ("trusted", 5, "warning"), ("unknown", 90, "failed")]
)
def test_certificate_is_described_or_refused(issuer: str, days: int, verdict: str, run: Run, tmp_path: Path) -> None:
    authority, bundle = trustme.CA(organization_name="Acme CA"), tmp_path / "ca.pem"
    server = tls_service(authority, datetime.now(UTC) + timedelta(days=days, hours=1))
    (authority if issuer == "trusted" else trustme.CA()).cert_pem.write_to_path(str(bundle))
    environ = {"ESCROWCTL_BASE_URL": f"https://localhost:{server.port}", "ESCROWCTL_API_KEY": KEY}

    result = run("doctor", environ={**environ, "ESCROWCTL_CA_BUNDLE": str(bundle)})

    server.listener.close()
    tls = check(result, "tls")
    assert (tls["verdict"], checks(result)["tcp"]) == (verdict, "ok")
    if issuer == "unknown":
        assert (result.code, server.heads) == (16, [])
        assert "ESCROWCTL_CA_BUNDLE" in tls["hint"]
