"""Base URLs that are taken, and the URL that a write then goes to; and those that no resolver may see."""

import pytest
from conftest import KEY, Run

from cli.conftest import Journal
from cli.replies import CREATE


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://escrow.example.com", "https://escrow.example.com"),
        ("https://escrow.example.com/", "https://escrow.example.com"),
        ("HTTPS://Escrow.Example.COM", "https://escrow.example.com"),
        ("https://escrow.example.com:443", "https://escrow.example.com"),
        ("https://escrow.example.com.", "https://escrow.example.com"),
        ("https://escrow.example.com:8443/Base/v2/", "https://escrow.example.com:8443/Base/v2"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("HTTP://LOCALHOST:80/", "http://localhost"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://127.8.9.10", "http://127.8.9.10"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("https://[2001:DB8::1]", "https://[2001:db8::1]"),
    ],
)
def test_a_base_url_has_one_form(base_url: str, url: str, run: Run) -> None:
    environ = {"ESCROWCTL_BASE_URL": base_url, "ESCROWCTL_API_KEY": KEY}

    result = run(*CREATE, "--dry-run", "--json", environ=environ)

    assert result.code == 0, result.err
    assert result.json["url"] == f"{url}/api/v1/transactions"


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.1",
        "http://2130706433",
        "http://0x7f.0.0.1",
        "http://0.0.0.0",
        "http://[::]",
        "http://[::ffff:10.0.0.1]",
        "http://localhost.example.com",
        "http://localhost@escrow.example.com",
        "http://escrow.example.com#@localhost",
        "http://escrow.example.com\\@localhost",
        "https://[v1.escrow]",
        "https://[escrow.example.com]",
        "https://escrow.example.com:0",
        "https://escrow.example.com:x",
        "https://escrow.example.com:-1",
        "https://:443",
        "https://.",
        "https://..",
        "https://escrow..example.com",
        "https://xn--.example.com",
        "https://a*b.example.com",
        "https://a;b.example.com",
        "https://" + "a" * 64 + ".example.com",
        "//escrow.example.com",
        "https:escrow.example.com",
        "https:///escrow.example.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://h/%2e%2e/x",
        "https://h/./x",
        "https://h/a b",
        "https://h\x00.example.com",
        "https://h\x1b[2J",
    ],
)
def test_what_is_no_base_url_is_refused_before_anything_is_recorded(base_url: str, run: Run, journal: Journal) -> None:
    environ = {"ESCROWCTL_BASE_URL": base_url, "ESCROWCTL_API_KEY": KEY}

    result = run(*CREATE, environ=environ)

    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("error: ESCROWCTL_BASE_URL ")
    assert "Nothing was sent." in result.err
    assert "\x1b" not in result.err
    assert journal() == []
