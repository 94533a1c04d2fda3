"""Base URLs that are taken, and the URL that a write then goes to; and those that no resolver may see."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Run

from cli.conftest import Journal
from cli.replies import CREATE


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("HTTPS://Escrow.Example.COM", "https://escrow.example.com"),
        ("https://escrow.example.com:443", "https://escrow.example.com"),
        ("https://escrow.example.com.", "https://escrow.example.com"),
        ("https://escrow.example.com:8443/Base/v2/", "https://escrow.example.com:8443/Base/v2"),
        ("HTTP://LOCALHOST:80/", "http://localhost"),
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
        "http://escrow.example.com",
        "http://127.1",
        "http://0.0.0.0",
        "http://[::ffff:10.0.0.1]",
        "http://localhost.example.com",
        "http://localhost@escrow.example.com",
        "http://escrow.example.com#@localhost",
        "http://escrow.example.com\\@localhost",
        "https://user:secret@escrow.example.com",
        "https://escrow.example.com?x=1",
        "https://escrow.example.com:0",
        "https://escrow..example.com",
        "https://" + "a" * 64 + ".example.com",
        "https:escrow.example.com",
        "javascript:alert(1)",
        "https://h/%2e%2e/x",
        "https://h/a/../b",
        "https://h\x1b[2J",
    ],
)
def test_invalid_base_url_is_refused_before_anything_is_recorded(base_url: str, run: Run, journal: Journal) -> None:
    environ = {"ESCROWCTL_BASE_URL": base_url, "ESCROWCTL_API_KEY": KEY}

    result = run(*CREATE, environ=environ)

    assert (result.code, result.out, journal()) == (2, "", []), result.err
    assert [text in result.err for text in ("ESCROWCTL_BASE_URL", "secret", "\x1b")] == [True, False, False]


def test_a_base_url_that_ends_in_the_prefix_is_refused(run: Run, tmp_path: Path, journal: Journal) -> None:
    url, config = "https://h.example.com/x/api/v1", tmp_path / "config.toml"
    config.write_text(f'[profiles.a]\nbase_url = "{url}"\n')
    environ = {"ESCROWCTL_API_KEY": KEY}

    results = [
        run(*CREATE, environ=environ | {"ESCROWCTL_BASE_URL": f"{url}/"}),
        run("--base-url", url, *CREATE, environ=environ),
        run("--config", str(config), "-p", "a", *CREATE, environ=environ),
    ]

    assert [(result.code, "https://h.example.com/x." in result.err) for result in results] == [(2, True)] * 3
    assert journal() == []


def test_other_paths_and_an_empty_prefix_are_accepted(run: Run, write_config: Callable[[str], Path]) -> None:
    write_config(
        '[profiles.none]\nbase_url = "https://h.example.com/api/v1"\napi_prefix = ""\n'
        '[profiles.other]\nbase_url = "https://h.example.com/v1"\n'
    )

    environ = {"ESCROWCTL_BASE_URL": "https://h.example.com", "ESCROWCTL_API_KEY": KEY}
    found = {name: run("-p", name, *CREATE, "--dry-run", "--json", environ=environ) for name in ("none", "other")}

    assert found["none"].json["url"] == "https://h.example.com/api/v1/transactions"
    assert found["other"].json["url"] == "https://h.example.com/v1/api/v1/transactions"
