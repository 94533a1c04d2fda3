"""https: which servers are trusted, what counts as sent, and that the environment weakens nothing."""

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from conftest import KEY, Run
from wire_server import http_reply

from cli.replies import CREATE, HELD
from escrowctl.client.transport import make_tls_context


@dataclass
class TlsServer:
    """Answers one request a connection over TLS; `heads` keeps what arrived inside."""

    context: ssl.SSLContext
    ends_with: bytes = b"}"
    """How a request ends: a create with its body. Closing earlier would reset the connection."""
    heads: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as connection:
                head = b""
                while not head.endswith(self.ends_with):
                    head += connection.recv(65536)
                self.heads.append(head)
                connection.sendall(http_reply("200 OK", HELD, "Connection: close"))


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(authority: trustme.CA) -> Iterator[TlsServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    running = TlsServer(context)
    yield running
    running.listener.close()


def environ(server: TlsServer, host: str = "localhost", **more: str) -> dict[str, str]:
    return {"ESCROWCTL_BASE_URL": f"https://{host}:{server.port}", "ESCROWCTL_API_KEY": KEY, **more}


def test_a_create_over_tls_to_an_authority_of_our_own(
    server: TlsServer, authority: trustme.CA, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, key_log = tmp_path / "ca.pem", tmp_path / "keys"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSLKEYLOGFILE", str(key_log))

    result = run(*CREATE, "-q", environ=environ(server, ESCROWCTL_CA_BUNDLE=str(bundle)))

    assert (result.code, result.out) == (0, "tx_1\n")
    assert f"Authorization: Bearer {KEY}".encode() in server.heads[0]
    assert not key_log.exists()


@pytest.mark.parametrize("flaw", ["unknown authority", "another name", "TLS 1.1", "expired"])
def test_untrusted_server_is_sent_nothing(flaw: str, authority: trustme.CA, run: Run, tmp_path: Path) -> None:
    context, bundle = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "ca.pem"
    ends = datetime(2021, 1, 1, tzinfo=UTC) if flaw == "expired" else None
    if flaw == "TLS 1.1":
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
    authority.issue_cert("localhost", not_after=ends).configure_cert(context)
    (trustme.CA() if flaw == "unknown authority" else authority).cert_pem.write_to_path(str(bundle))
    server, host = TlsServer(context), "127.0.0.1" if flaw == "another name" else "localhost"

    result = run(*CREATE, "--json", environ=environ(server, host, ESCROWCTL_CA_BUNDLE=str(bundle)))

    server.listener.close()
    assert (result.code, result.out, result.error["outcome"], server.heads) == (11, "", "not_sent", [])
    assert flaw != "unknown authority" or "ESCROWCTL_CA_BUNDLE" in result.error["hint"]
    assert flaw != "another name" or "ESCROWCTL_CA_BUNDLE" not in result.error["hint"]


def test_invalid_ca_bundle_is_a_configuration_error(server: TlsServer, run: Run, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate at all")

    results = [
        run(*CREATE, environ=environ(server, ESCROWCTL_CA_BUNDLE=str(tmp_path / name))) for name in ("ca.pem", "x")
    ]

    assert ([result.code for result in results], server.heads) == ([2, 2], [])


def test_trust_variables_of_the_environment_are_ignored(
    server: TlsServer, authority: trustme.CA, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, folder = tmp_path / "ca.pem", tmp_path / "certs"
    authority.cert_pem.write_to_path(str(bundle))
    folder.mkdir()
    (folder / "ca.pem").write_bytes(bundle.read_bytes())
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(bundle)]
    hashed = subprocess.run(command, capture_output=True, text=True, check=True)
    (folder / f"{hashed.stdout.strip()}.0").write_bytes(bundle.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))

    result = run(*CREATE, "--json", environ=environ(server))

    assert (result.code, result.error["outcome"], server.heads) == (11, "not_sent", [])


def test_the_system_s_trust_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    expected = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    expected.load_default_certs()

    assert make_tls_context(None).cert_store_stats() == expected.cert_store_stats()
