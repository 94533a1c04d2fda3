"""`escrowctl doctor` and the way to the service: clock, name, connection, proxy, certificate."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from conftest import KEY, NOW, Run, Serve
from wire_server import Behave, Seen, answering, http_reply, say_nothing

from cli.conftest import Profile
from cli.replies import break_off
from cli.test_doctor import DATE, check, checks, failed, service
from cli.test_tls import TlsServer


@pytest.mark.parametrize(("seconds", "verdict"), [(0, "ok"), (45, "ok"), (-90, "warning"), (7200, "warning")])
def test_clock_is_compared_with_the_date_of_the_reply(seconds: int, verdict: str, profile: Profile, run: Run) -> None:
    profile(behave=answering(http_reply("200 OK", b"[]", DATE)))

    result = run("doctor", now=lambda: NOW + timedelta(seconds=seconds))

    assert (result.code, checks(result)["clock"]) == (0, verdict)
    if verdict == "warning":
        assert f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'}" in check(result, "clock")["finding"]


def test_clock_is_not_compared_with_a_stored_reply(profile: Profile, run: Run) -> None:
    profile(behave=answering(http_reply("200 OK", b"[]", DATE, "Age: 7200")))

    assert checks(run("doctor", now=lambda: NOW + timedelta(hours=2)))["clock"] == "skipped"


def test_host_without_an_address_is_named(run: Run) -> None:
    environ = {"ESCROWCTL_BASE_URL": "https://nosuch.invalid", "ESCROWCTL_API_KEY": KEY}

    result = run("doctor", environ=environ)

    assert (result.code, failed(result)) == (16, ["dns"])
    assert "nosuch.invalid" in check(result, "dns")["finding"]
    assert [checks(result)[name] for name in ("tcp", "access", "locks")] == ["skipped", "skipped", "ok"]


def test_name_is_looked_up_without_a_key(run: Run) -> None:
    result = run("doctor", environ={"ESCROWCTL_BASE_URL": "https://nosuch.invalid"})

    assert failed(result) == ["key", "dns"]


def test_closed_port_is_named(serve: Serve, run: Run) -> None:
    server = serve(service())
    server.close()

    result = run("doctor", environ={"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY})

    assert (result.code, failed(result)) == (16, ["tcp"])
    assert "ESCROWCTL_BASE_URL" in check(result, "tcp")["hint"]


def test_last_of_several_attempts_counts(profile: Profile, run: Run) -> None:
    def close_and_break_off(seen: Seen, connection: socket.socket) -> None:
        server.close()
        break_off(seen, connection)

    server = profile(behave=close_and_break_off)

    assert failed(run("doctor")) == ["tcp"]


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
    assert "http://***@127.0.0.1" in check(result, "proxy")["finding"]
    assert "HTTPS_PROXY" in check(result, "tcp")["finding"]
    assert "403" in check(result, "tcp")["finding"]
    assert "escrow.example.com in NO_PROXY" in check(result, "tcp")["hint"]
    assert "s3cr3t" not in result.out + result.err


def test_proxy_that_is_not_reached_is_named(proxy: dict[str, str], serve: Serve, run: Run) -> None:
    closed = serve(say_nothing)
    closed.close()

    result = run("doctor", environ={**proxy, "HTTPS_PROXY": f"http://localhost:{closed.port}"})

    assert failed(result) == ["tcp"]
    assert "the proxy from HTTPS_PROXY" in check(result, "tcp")["finding"]
    assert "localhost" in check(result, "dns")["finding"]


def test_proxy_is_not_used_for_loopback(profile: Profile, proxy: dict[str, str], run: Run) -> None:
    profile(behave=service())

    result = run("doctor", environ={"HTTPS_PROXY": proxy["HTTPS_PROXY"]})

    assert (result.code, checks(result)["proxy"]) == (0, "ok")
    assert "none; HTTPS_PROXY does not apply" in check(result, "proxy")["finding"]


def test_unusable_proxy_is_named_once(proxy: dict[str, str], run: Run) -> None:
    result = run("doctor", environ={**proxy, "HTTPS_PROXY": "socks5://127.0.0.1:9"})

    assert failed(result) == ["proxy"]
    assert [checks(result)[name] for name in ("key", "settings", "dns")] == ["ok", "skipped", "skipped"]


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
    if issuer == "trusted":
        assert "TLSv1.3, certificate by Acme CA, valid until" in tls["finding"]
        assert f"in {days} days" in tls["finding"]
    else:
        assert (result.code, server.heads) == (16, [])
        assert "ESCROWCTL_CA_BUNDLE" in tls["hint"]


def test_certificate_of_a_proxy_is_not_that_of_the_service(run: Run, tmp_path: Path) -> None:
    authority, bundle = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    # It accepts the tunnel and then sends no TLS.
    proxy = tls_service(authority, datetime.now(UTC) + timedelta(days=90))
    environ = {"ESCROWCTL_BASE_URL": "https://escrow.example.com", "ESCROWCTL_API_KEY": KEY}

    result = run(
        "doctor",
        environ={**environ, "HTTPS_PROXY": f"https://localhost:{proxy.port}", "ESCROWCTL_CA_BUNDLE": str(bundle)},
    )

    proxy.listener.close()
    assert (result.code, failed(result)) == (16, ["tls"])


def test_ca_bundle_that_is_none_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    environ = {"ESCROWCTL_BASE_URL": "https://127.0.0.1:9", "ESCROWCTL_API_KEY": KEY}

    results = [
        run("doctor", environ={**environ, "ESCROWCTL_CA_BUNDLE": str(tmp_path / name)}) for name in ("ca.pem", "none")
    ]

    assert [failed(result) for result in results] == [["tls"], ["settings"]]
