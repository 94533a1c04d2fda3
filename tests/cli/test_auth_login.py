"""`auth login`: a key is checked, and stored in a file or the keyring."""

import os
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve
from keyring_stub import KeyringStub
from wire_server import Seen, WireServer, say_nothing

from cli.replies import OTHER_KEY, json_reply, takes


def files_of(home: Path) -> dict[str, str]:
    """Return every file of the home, with its text."""
    return {path.name: path.read_text() for path in home.rglob("*") if path.is_file()} if home.exists() else {}


def login(run: Run, server: WireServer, *words: str, key: str = KEY, **keywords: Any) -> Any:
    return run("auth", "login", "--base-url", server.base_url, *words, stdin=key, **keywords)


def test_key_from_a_pipe_is_checked_stored_and_used(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY))

    result = login(run, server, "--mode", "test", "-p", "acme-test")

    assert result.code == 0
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["profile", "base_url", "mode", "key"]
    assert [(seen.method, seen.target, seen.header("Authorization")) for seen in server.seen] == [
        ("GET", "/api/v1/webhooks", f"Bearer {KEY}")
    ]
    assert files_of(home) == {
        "config.toml": f'default_profile = "acme-test"\n\n[profiles.acme-test]\nbase_url = "{server.base_url}"\n'
        'mode = "test"\n',
        "credentials.toml": "# Written by escrowctl auth login. Whoever can read this can use the keys.\n\n"
        f'[acme-test]\norigin = "{server.base_url}"\nkey = "{KEY}"\n',
    }
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.iterdir())}
    assert modes == {"escrowctl": 0o700, "config.toml": 0o600, "credentials.toml": 0o600}
    assert run("webhook", "list").code == 0
    assert server.seen[-1].header("Authorization") == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("key", "code"),
    [("", 4), (f"{KEY}\n{KEY}\n", 2), (f" {KEY}", 2), (f"{KEY}\x1b[2J", 2), ("k" * 4097, 2), ("1234567", 2)],
    ids=["empty", "two lines", "before", "escape", "long", "short"],
)
def test_malformed_key_is_not_sent_stored_or_shown(run: Run, serve: Serve, home: Path, key: str, code: int) -> None:
    server = serve(takes(KEY))

    result = login(run, server, "--mode", "test", "-p", "a", "--debug", key=key)

    assert (result.code, result.out, server.seen, files_of(home)) == (code, "", [], {})
    assert KEY not in result.err
    assert key == "" or key.strip() == "" or key not in result.err


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        ("401 Unauthorized", b'{"detail":"bad key"}', 4),
        ("404 Not Found", b"", 6),
        ("500 Oh No", b"", 10),
        ("200 OK", b"<html>log in</html>", 10),
    ],
    ids=["401", "404", "500", "HTML"],
)
def test_refused_key_is_not_stored(run: Run, serve: Serve, home: Path, status: str, body: bytes, code: int) -> None:
    result = login(run, serve(json_reply(body, status)), "--mode", "test", "-p", "a")

    assert (result.code, result.out, files_of(home)) == (code, "", {}), result.err


def test_unreachable_service_stores_no_key_unless_unchecked(run: Run, serve: Serve, home: Path) -> None:
    server = serve(say_nothing)
    server.close()

    refused = login(run, server, "--mode", "test", "-p", "a")
    assert (refused.code, refused.out, files_of(home)) == (11, "", {})
    assert "--no-check" in refused.err

    stored = login(run, server, "--mode", "test", "-p", "a", "--no-check", "--json")
    assert (stored.code, stored.json["checked"]) == (0, False)
    assert KEY in files_of(home)["credentials.toml"]


def test_named_prefix_is_checked_and_stored(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY))

    assert login(run, server, "--mode", "test", "-p", "a", "--api-prefix", "/v1").code == 0

    assert [seen.target for seen in server.seen] == ["/v1/webhooks"]
    assert 'api_prefix = "/v1"' in files_of(home)["config.toml"]
    assert (login(run, server, "--mode", "test", "-p", "b", "--api-prefix", "v1/../x").code, len(server.seen)) == (2, 1)


def test_login_without_a_name_builds_one_from_host_and_mode(run: Run) -> None:
    urls = {
        "https://pay.acme.co.uk": "acme-live",
        "https://192.0.2.7": "service-live",
        "http://localhost:9": "local-live",
    }
    options = ("--mode", "live", "--no-check", "-q")

    assert {url: run("auth", "login", "--base-url", url, *options, stdin=KEY).out.strip() for url in urls} == urls


@pytest.mark.parametrize(
    "words",
    [
        ("--mode", "test"),
        ("--base-url", "https://a.example.com"),
        ("--base-url", "https://a.example.com/api/v1", "--mode", "test"),
        ("--base-url", "https://a.example.com", "--mode", "test", "-p", "a b"),
        ("--base-url", "https://a.example.com", "--mode", "test", "--sandbox"),
    ],
    ids=["no URL", "no mode", "prefix twice", "name", "sandbox"],
)
def test_login_with_missing_or_wrong_options_stores_nothing(run: Run, home: Path, words: tuple[str, ...]) -> None:
    result = run("auth", "login", *words, stdin=KEY)

    assert (result.code, result.out, files_of(home)) == (2, "", {})


@pytest.mark.parametrize(("flag", "environ"), [("--no-input", {}), ("--json", {}), ("-q", {"CI": "1"})])
def test_login_that_must_not_prompt_fails_without_a_key(run: Run, flag: str, environ: dict[str, str]) -> None:
    words = ("auth", "login", "--base-url", "https://a.example.com", "--mode", "test", flag)

    result = run(*words, stdin=f"{KEY}\n", terminal=True, environ=environ)

    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    "words",
    [("auth", "login", KEY), ("auth", "login", "--api-key", KEY), ("tx", "get", "tx_1", f"--token={KEY}")],
    ids=["login", "login --api-key", "get --token"],
)
def test_key_in_an_option_is_refused_and_not_shown(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words)

    assert (result.code, result.out, KEY in result.err) == (2, "", False)
    assert "escrowctl auth login" in result.err


def test_second_login_replaces_only_the_key(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY, OTHER_KEY))
    login(run, server, "--mode", "test", "-p", "a")
    login(run, server, "--mode", "live", "-p", "b")
    before = files_of(home)

    assert run("-p", "a", "auth", "login", stdin=OTHER_KEY).code == 0

    after = files_of(home)
    assert after["config.toml"] == before["config.toml"]
    keys = {name: row["key"] for name, row in tomllib.loads(after["credentials.toml"]).items()}
    assert keys == {"a": OTHER_KEY, "b": KEY}


@pytest.mark.parametrize(
    "words", [("--base-url", "https://other.example.com", "--mode", "test"), ("--mode", "live")], ids=["URL", "mode"]
)
def test_a_login_never_turns_a_profile_into_another_account(
    run: Run, write_config: Callable[[str], Path], home: Path, words: tuple[str, ...]
) -> None:
    write_config('[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\n')
    before = files_of(home)

    result = run("-p", "a", "auth", "login", *words, "--no-check", stdin=KEY)

    assert (result.code, result.out, files_of(home)) == (2, "", before)


def test_a_key_that_would_not_be_used_is_not_stored(run: Run, write_config: Callable[[str], Path], home: Path) -> None:
    write_config('[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\napi_key_file = "a.key"\n')

    result = run("-p", "a", "auth", "login", "--no-check", stdin=KEY)

    assert (result.code, result.out) == (2, "")
    assert "credentials.toml" not in files_of(home)


@pytest.mark.parametrize("text", ["[profiles.a", '[profiles.a]\nbase_url = "https://b.example.com"\n'])
def test_login_stores_nothing_if_the_file_changed_meanwhile(
    run: Run, serve: Serve, write_config: Callable[[str], Path], home: Path, text: str
) -> None:
    def change_config(seen: Seen, connection: Any) -> None:
        write_config(text)
        takes(KEY)(seen, connection)

    result = login(run, serve(change_config), "--mode", "test", "-p", "a")

    assert (result.code, result.out) == (2, "")
    assert files_of(home) == {"config.toml": text}


@pytest.mark.parametrize("store", [(), ("--keyring",)], ids=["file", "keyring"])
def test_login_removes_the_key_when_the_last_rename_fails(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch, store: tuple[str, ...]
) -> None:
    stub, server = keyring(monkeypatch, KeyringStub()), serve(takes(KEY))
    login(run, server, "--mode", "test", "-p", "a")
    before = files_of(home)
    replace = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if target.name == "config.toml":
            raise OSError(5, "Input/output error")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    result = login(run, server, "--mode", "test", "-p", "b", *store)

    assert (result.code, result.out) == (17, "")
    assert (files_of(home), stub.entries) == (before, {})


def keyring(monkeypatch: pytest.MonkeyPatch, stub: KeyringStub) -> KeyringStub:
    monkeypatch.setitem(sys.modules, "keyring", stub.module)
    return stub


def test_chosen_keyring_holds_the_key_and_the_file_names_it(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, ring = serve(takes(KEY)), keyring(monkeypatch, KeyringStub())

    stored = login(run, server, "--mode", "test", "-p", "a", "--keyring")
    used = run("webhook", "list")

    assert (stored.code, used.code) == (0, 0)
    assert ring.entries == {(f"escrowctl {server.base_url}", "a"): KEY}
    assert f'[a]\norigin = "{server.base_url}"\nstore = "keyring"\n' in files_of(home)["credentials.toml"]
    assert KEY not in "".join(files_of(home).values())

    assert (run("auth", "logout", "-p", "a").code, ring.entries) == (0, {})
    assert "[a]" not in files_of(home)["credentials.toml"]
    assert run("user", "get", "usr_1").code == 4


def test_keyring_is_not_used_unless_chosen(run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = keyring(monkeypatch, KeyringStub())
    login(run, serve(takes(KEY)), "--mode", "test", "-p", "a")
    run("user", "get", "usr_1")
    run("auth", "status")
    assert ring.calls == 0


@pytest.mark.parametrize("case", ["not installed", "fails", "forgets", "CI"])
def test_keyring_that_cannot_be_used_stores_nothing(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    stub = KeyringStub(fails=RuntimeError(f"locked, and the key was {KEY}") if case == "fails" else None)
    if case == "forgets":
        monkeypatch.setattr(stub, "get_password", lambda *_: None)
    monkeypatch.setitem(sys.modules, "keyring", None if case == "not installed" else stub.module)
    environ = {"CI": "true"} if case == "CI" else {}

    result = login(run, serve(takes(KEY)), "--mode", "test", "-p", "a", "--keyring", "--json", environ=environ)

    assert (result.code, result.out, result.error["code"]) == (2, "", "bad_value")
    assert (KEY in result.err, files_of(home)) == (False, {})
    assert case != "CI" or stub.calls == 0


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_keys_are_written_to_a_plain_file_only(run: Run, home: Path, tmp_path: Path, kind: str) -> None:
    home.mkdir(parents=True, mode=0o700)
    # It could be read as stored keys: none.
    precious = tmp_path / "precious"
    precious.write_text("# do not overwrite\n")
    precious.chmod(0o600)
    path = home / "credentials.toml"
    path.symlink_to(precious) if kind == "link" else os.mkfifo(path, 0o600)

    line = ("auth", "login", "--base-url", "https://a.example.com", "--mode", "test", "-p", "a", "--no-check")
    result = run(*line, stdin=KEY)

    assert (result.code, result.out) == (17, ""), result.err
    assert precious.read_text() == "# do not overwrite\n"
    assert KEY not in result.err + "".join(one.read_text() for one in home.iterdir() if one.is_file())
