"""`escrowctl auth`: keys are stored, checked, listed and removed, and never shown."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, Serve
from keyring_stub import KeyringStub
from wire_server import Behave, Seen, WireServer, http_reply, say_nothing

from cli.replies import CREATE, HELD, json_reply

OTHER_KEY = "sk_live_fedcba9876543210"


def takes(*keys: str) -> Behave:
    """Return a service that takes these keys, and has no webhooks."""

    def behave(seen: Seen, connection: Any) -> None:
        known = seen.header("Authorization") in {f"Bearer {key}" for key in keys}
        refusal = http_reply("401 Unauthorized", b'{"detail":"no such key"}')
        connection.sendall(http_reply("200 OK", b"[]") if known else refusal)

    return behave


def files_of(home: Path) -> dict[str, str]:
    """Return every file of the home, with its text."""
    return {path.name: path.read_text() for path in home.rglob("*") if path.is_file()} if home.exists() else {}


def login(run: Run, server: WireServer, *words: str, key: str = KEY, **keywords: Any) -> Any:
    return run("auth", "login", "--base-url", server.base_url, *words, stdin=key, **keywords)


# Login


def test_key_from_a_pipe_is_checked_stored_and_used(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY))

    result = login(run, server, "--mode", "test", "-p", "acme-test")

    assert (result.code, result.out) == (
        0,
        "profile\tacme-test\n"
        f"base_url\t{server.base_url}\n"
        "mode\ttest\n"
        f"key\tstored in {home / 'credentials.toml'}, accepted by the service\n",
    )
    assert result.err.splitlines() == [
        "note: acme-test is now the default profile: commands without -p use it",
        "next: escrowctl -p acme-test tx create --amount 100 --currency USD --dry-run",
    ]
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
    [
        ("", 4),
        (f"{KEY}\n{KEY}\n", 2),
        (f" {KEY}", 2),
        (f"\ufeff{KEY}", 2),
        (f"{KEY}\x1b[2J", 2),
        ("k" * 4097, 2),
        (f"Bearer {KEY}", 2),
    ],
    ids=["empty", "two lines", "before", "BOM", "escape", "long", "Bearer"],
)
def test_malformed_key_is_neither_sent_nor_stored_nor_shown(
    run: Run, serve: Serve, home: Path, key: str, code: int
) -> None:
    server = serve(takes(KEY))

    result = login(run, server, "--mode", "test", "-p", "a", "--debug", key=key)

    assert (result.code, result.out, server.seen, files_of(home)) == (code, "", [], {})
    assert KEY not in result.err
    assert key == "" or key.strip() == "" or key not in result.err


@pytest.mark.parametrize(
    ("reply", "code", "sentence", "hint"),
    [
        (http_reply("401 Unauthorized", b'{"detail":"bad key"}'), 4, "does not accept this key", ""),
        (http_reply("403 Forbidden"), 4, "does not accept this key for GET /webhooks", "--no-check"),
        (http_reply("404 Not Found"), 6, "the API may have another prefix", "--api-prefix /v1"),
        (http_reply("500 Oh No"), 10, "500", "--no-check"),
        (http_reply("200 OK", b"<html>log in</html>", content_type="text/html"), 10, "the reply", "--no-check"),
    ],
    ids=["401", "403", "404", "500", "HTML"],
)
def test_a_key_that_is_not_taken_is_not_stored(
    run: Run, serve: Serve, home: Path, reply: bytes, code: int, sentence: str, hint: str
) -> None:
    server = serve(lambda _seen, connection: connection.sendall(reply))

    result = login(run, server, "--mode", "test", "-p", "a")

    assert (result.code, result.out, files_of(home)) == (code, "", {}), result.err
    first, *hints = (line for line in result.err.splitlines() if not line.startswith("note: "))
    assert sentence in first
    assert first.endswith(" Nothing was stored.")
    assert hint in "\n".join(hints)
    assert len(server.seen) == (3 if sentence == "500" else 1)


@pytest.mark.parametrize(
    "reply", [b"[]", b'{"data": []}', b'{"anything": 1}', b""], ids=["list", "data", "record", "empty"]
)
def test_any_readable_reply_means_that_the_key_is_taken(run: Run, serve: Serve, reply: bytes) -> None:
    assert login(run, serve(json_reply(reply)), "--mode", "test", "-p", "a").code == 0


def test_login_stores_nothing_when_the_service_is_unreachable_unless_unchecked(
    run: Run, serve: Serve, home: Path
) -> None:
    server = serve(say_nothing)
    server.close()

    refused = login(run, server, "--mode", "test", "-p", "a")
    assert (refused.code, refused.out, files_of(home)) == (11, "", {})
    assert "to store the key without a check: repeat the command with --no-check" in refused.err

    stored = login(run, server, "--mode", "test", "-p", "a", "--no-check", "--json")
    assert (stored.code, stored.json["checked"]) == (0, False)
    assert KEY in files_of(home)["credentials.toml"]


def test_named_prefix_is_checked_and_stored(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY))

    assert login(run, server, "--mode", "test", "-p", "a", "--api-prefix", "/v1").code == 0

    assert [seen.target for seen in server.seen] == ["/v1/webhooks"]
    assert 'api_prefix = "/v1"' in files_of(home)["config.toml"]
    bad = login(run, server, "--mode", "test", "-p", "b", "--api-prefix", "v1/../x")
    assert (bad.code, len(server.seen)) == (2, 1)


def test_login_refuses_base_url_with_prefix_before_reading_the_key(run: Run, serve: Serve, home: Path) -> None:
    server = serve(json_reply(b"{}", "404 Not Found"))

    def attempt(path: str, *words: str) -> Any:
        line = ("auth", "login", "--base-url", server.base_url + path, "--mode", "test", "-p", "a")
        return run(*line, *words, stdin=KEY)

    twice, short = attempt("/api/v1"), attempt("/v1", "--api-prefix", "/v1")
    assert [(result.code, result.out, len(server.seen)) for result in (twice, short)] == [(2, "", 0)] * 2
    assert f'--base-url "{server.base_url}/api/v1" already ends in /api/v1: leave it out, write {server.base_url}.' in (
        twice.err
    )
    # What the URL has already is not suggested once more.
    nested = attempt("/v1")
    assert (nested.code, [seen.target for seen in server.seen]) == (6, ["/v1/api/v1/webhooks"])
    assert f"--base-url {server.base_url}/v1 --mode test -p a --api-prefix ''\n" in nested.err
    assert attempt("/v1", "--api-prefix", "").code == 6
    assert server.seen[-1].target == "/v1/webhooks"
    assert files_of(home) == {}


@pytest.mark.parametrize(
    ("url", "mode", "name"),
    [
        ("https://api.acme.com", "test", "acme-test"),
        ("https://pay.acme.co.uk", "live", "acme-live"),
        ("https://192.0.2.7", "live", "service-live"),
        ("http://localhost:9", "test", "local-test"),
    ],
)
def test_login_without_a_name_builds_one_from_host_and_mode(run: Run, url: str, mode: str, name: str) -> None:
    result = run("auth", "login", "--base-url", url, "--mode", mode, "--no-check", "-q", stdin=KEY)
    assert (result.code, result.out) == (0, f"{name}\n")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--mode", "test"), "--base-url URL is missing"),
        (("--base-url", "https://a.example.com"), "--mode test or --mode live is missing"),
        (("--base-url", "https://a.example.com", "--mode", "prod"), '--mode "prod" is neither test nor live.'),
        (("--base-url", "https://a.example.com", "--mode", "test", "-p", "a b"), '"a b" cannot be a profile name'),
        (
            ("--base-url", "https://a.example.com", "--mode", "test", "--sandbox"),
            "auth manages the API keys of real services",
        ),
    ],
)
def test_login_names_missing_or_wrong_options_before_reading_the_key(
    run: Run, home: Path, words: tuple[str, ...], part: str
) -> None:
    result = run("auth", "login", *words, stdin=KEY)
    assert (result.code, result.out, files_of(home)) == (2, "", {})
    assert part in result.err


@pytest.mark.parametrize(
    ("flag", "environ", "why"),
    [
        ("--no-input", {}, "--no-input is set"),
        ("--json", {}, "--json is set"),
        ("-q", {"CI": "1"}, "the variable CI is set"),
    ],
)
def test_login_that_must_not_prompt_fails_without_a_key(run: Run, flag: str, environ: dict[str, str], why: str) -> None:
    words = ("auth", "login", "--base-url", "https://a.example.com", "--mode", "test", flag)
    result = run(*words, stdin=f"{KEY}\n", terminal=True, environ=environ)
    assert (result.code, result.out) == (2, "")
    assert f"{why}." in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("auth", "login", KEY), "auth login takes options only"),
        (("auth", "login", f"--key={KEY}"), "there is no --key"),
        (("auth", "login", "--api-key", KEY), "there is no --api-key"),
        (("tx", "get", "tx_1", f"--token={KEY}"), "there is no --token"),
    ],
)
def test_key_in_an_option_is_refused_and_not_shown(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run(*words)

    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        f"error: {message}. API keys are not accepted on the command line: they would show in ps and in shell history. "
        "Nothing was sent.",
        "hint: to type the key:  escrowctl auth login",
        '      in a pipe:        printf %s "$KEY" | escrowctl auth login ...',
        "      in a job:         set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY",
    ]


# Login over what is there


def test_second_login_replaces_only_the_key(run: Run, serve: Serve, home: Path) -> None:
    server = serve(takes(KEY, OTHER_KEY))
    login(run, server, "--mode", "test", "-p", "a")
    login(run, server, "--mode", "live", "-p", "b")
    before = files_of(home)

    again = run("-p", "a", "auth", "login", stdin=OTHER_KEY)

    assert (again.code, again.err.count("default profile now")) == (0, 0)
    assert files_of(home) == before | {
        "credentials.toml": before["credentials.toml"].replace(
            f'[a]\norigin = "{server.base_url}"\nkey = "{KEY}"\n\n[b]', "[b]"
        )
        + f'\n[a]\norigin = "{server.base_url}"\nkey = "{OTHER_KEY}"\n'
    }


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("--base-url", "https://other.example.com", "--mode", "test"),
            "profile a already has the base URL https://a.example.com",
        ),
        (("--mode", "live"), "profile a is already a test profile"),
    ],
)
def test_a_login_never_turns_a_profile_into_another_account(
    run: Run, write_config: Callable[[str], Path], home: Path, words: tuple[str, ...], part: str
) -> None:
    write_config('[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\n')
    before = files_of(home)

    result = run("-p", "a", "auth", "login", *words, "--no-check", stdin=KEY)

    assert (result.code, result.out, files_of(home)) == (2, "", before)
    assert part in result.err


def test_a_key_that_would_not_be_used_is_not_stored(run: Run, write_config: Callable[[str], Path], home: Path) -> None:
    write_config('[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\napi_key_file = "a.key"\n')

    result = run("-p", "a", "auth", "login", "--no-check", stdin=KEY)

    assert (result.code, result.out) == (2, "")
    assert "profile a takes its key from the file a.key" in result.err
    assert "credentials.toml" not in files_of(home)


def test_login_reports_that_it_replaces_a_key_of_another_origin(run: Run, serve: Serve, home: Path) -> None:
    first, second = serve(takes(KEY)), serve(takes(OTHER_KEY))
    login(run, first, "--mode", "test", "-p", "a")
    run("config", "set", "profiles.a.base_url", second.base_url)
    assert run("-p", "a", "user", "get", "usr_1").code == 4

    moved = run("-p", "a", "auth", "login", stdin=OTHER_KEY)

    assert moved.code == 0
    assert first.base_url in moved.err
    assert KEY not in files_of(home)["credentials.toml"]
    assert [seen.header("Authorization") for seen in second.seen] == [f"Bearer {OTHER_KEY}"]


@pytest.mark.parametrize("account", [None, "acme"])
def test_login_says_what_a_replaced_key_means_for_idempotency_keys(run: Run, serve: Serve, account: str | None) -> None:
    server = serve(json_reply(HELD))
    create = (*CREATE, "--idempotency-key", "order-1")
    first = login(run, server, "--mode", "test", "-p", "a", "--json")
    if account is not None:
        run("config", "set", "account", account)
    assert run(*create).code == 0

    again = run("-p", "a", "auth", "login", "--json", stdin=KEY)
    replaced = run("-p", "a", "auth", "login", "--json", stdin=OTHER_KEY)

    notes = [note for note in map(json.loads, replaced.err.splitlines()) if note["note"]["code"] == "key_replaced"]
    assert ["key_replaced" in result.err for result in (first, again)] == [False, False]
    assert ["account" in note["note"].get("hint", "") for note in notes] == [account is None]
    assert run(*create).code == (7 if account is None else 0)


@pytest.mark.parametrize("case", ["link into nowhere", "unknown default profile", "changed while it was tried"])
@pytest.mark.parametrize("store", [(), ("--keyring",)], ids=["file", "keyring"])
def test_a_profile_that_cannot_be_written_leaves_no_key_behind(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch, case: str, store: tuple[str, ...]
) -> None:
    stub = keyring(monkeypatch, KeyringStub())
    home.mkdir(mode=0o700, parents=True)
    config = home / "config.toml"
    if case == "link into nowhere":
        config.symlink_to(home.parent / "nowhere" / "config.toml")
    elif case == "unknown default profile":
        config.write_text('default_profile = "gone"\n')

    def behave(_seen: Seen, connection: Any) -> None:
        if case == "changed while it was tried":
            config.write_text('default_profile = "gone"\n')
        connection.sendall(http_reply("200 OK", b"[]"))

    server = serve(behave)
    result = login(run, server, "--mode", "test", "-p", "a", *store)

    late = case.startswith("changed")
    assert (result.code, result.out) == (17 if case.startswith("link") else 2, ""), result.err
    assert len(server.seen) == (1 if late else 0)
    assert ("Nothing was stored." in result.err, "Nothing was sent." in result.err) == (late, not late)
    assert (stub.entries, sorted(path.name for path in home.iterdir())) == ({}, ["config.toml"])


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
    assert result.err.endswith("Input/output error. No file was changed. Nothing was stored.\n")
    assert (files_of(home), stub.entries) == (before, {})


def test_login_refuses_when_the_prefix_changed_during_the_check(
    run: Run, serve: Serve, home: Path, write_config: Callable[[str], Path]
) -> None:
    def behave(_seen: Seen, connection: Any) -> None:
        write_config(text.replace("/v1", "/v2"))
        connection.sendall(http_reply("200 OK", b"[]"))

    server = serve(behave)
    text = f'[profiles.a]\nbase_url = "{server.base_url}"\nmode = "test"\napi_prefix = "/v1"\n'
    write_config(text)

    result = run("-p", "a", "auth", "login", stdin=KEY)

    assert (result.code, result.out, list(files_of(home))) == (2, "", ["config.toml"])
    assert (
        "profile a now has the API prefix /v2, but this login used /v1: log in again. Nothing was stored." in result.err
    )


# The keyring


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
    assert stored.out.splitlines()[3] == "key\tstored in the keyring, accepted by the service"
    assert ring.entries == {(f"escrowctl {server.base_url}", "a"): KEY}
    assert f'[a]\norigin = "{server.base_url}"\nstore = "keyring"\n' in files_of(home)["credentials.toml"]
    assert KEY not in "".join(files_of(home).values())

    gone = run("auth", "logout", "-p", "a")
    assert (gone.code, ring.entries) == (0, {})
    assert "[a]" not in files_of(home)["credentials.toml"]
    assert run("user", "get", "usr_1").code == 4


def test_keyring_is_not_used_unless_chosen(run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = keyring(monkeypatch, KeyringStub())
    login(run, serve(takes(KEY)), "--mode", "test", "-p", "a")
    run("user", "get", "usr_1")
    run("auth", "status")
    assert ring.calls == 0


@pytest.mark.parametrize("case", ["not installed", "fails", "none", "forgets", "CI"])
def test_keyring_that_cannot_be_used_stores_nothing(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    stub = KeyringStub(fails=RuntimeError(f"locked, and the key was {KEY}") if case == "fails" else None)
    if case == "none":
        stub.priority = 0
    if case == "forgets":
        monkeypatch.setattr(stub, "get_password", lambda *_: None)
    keyring(monkeypatch, stub)
    if case == "not installed":
        monkeypatch.setitem(sys.modules, "keyring", None)
    why = {
        "not installed": "the Python package keyring is missing (with pipx: pipx inject escrowctl keyring)",
        "fails": "RuntimeError",
        "none": "this system has no keyring (keyring_stub)",
        "forgets": "it did not return the key that was stored",
        "CI": "the variable CI is set, and CI jobs have no keyring",
    }[case]

    environ = {"CI": "true"} if case == "CI" else {}
    result = login(run, serve(takes(KEY)), "--mode", "test", "-p", "a", "--keyring", "--json", environ=environ)

    assert (result.code, result.out, result.error["code"]) == (2, "", "bad_value")
    assert result.error["message"] == f"--keyring: the keyring cannot be used: {why}. Nothing was stored."
    assert files_of(home) == {}
    assert case == "forgets" or stub.entries == {}
    assert case != "CI" or stub.calls == 0


def test_missing_keyring_is_reported_with_a_fix(run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(takes(KEY))
    keyring(monkeypatch, KeyringStub())
    login(run, server, "--mode", "test", "-p", "a", "--keyring")
    monkeypatch.setitem(sys.modules, "keyring", None)

    result = run("-p", "a", "user", "get", "usr_1")
    out = run("auth", "logout", "-p", "a")

    assert (result.code, result.out, len(server.seen)) == (4, "", 1)
    assert result.err.splitlines() == [
        "error: the key of profile a was stored in the keyring, but the keyring cannot be used now: the Python "
        "package keyring is missing (with pipx: pipx inject escrowctl keyring). Nothing was sent.",
        "hint: escrowctl auth login -p a",
        "      or set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY",
    ]
    assert (out.code, out.out) == (17, "")


# Logout, status, switch

SERVICES = """\
default_profile = "a"
[profiles.a]
base_url = "{a}"
mode = "test"
[profiles.b]
base_url = "{b}"
mode = "live"
[profiles.file]
base_url = "{b}"
mode = "test"
api_key_file = "file.key"
[profiles.loose]
base_url = "{b}"
mode = "test"
api_key_file = "loose.key"
[profiles.moved]
base_url = "{a}"
[profiles.none]
base_url = "https://none.example.com"
"""


@pytest.fixture
def accounts(serve: Serve, write_config: Callable[[str], Path], home: Path) -> tuple[WireServer, WireServer]:
    """Two services, A taking KEY and B taking OTHER_KEY, and profiles in every state."""
    a, b = serve(takes(KEY)), serve(takes(OTHER_KEY))
    write_config(SERVICES.format(a=a.base_url, b=b.base_url))
    stored = {"a": (a, KEY), "b": (b, KEY), "moved": (b, OTHER_KEY), "orphan": (b, OTHER_KEY)}
    credentials = "".join(f'[{name}]\norigin = "{at.base_url}"\nkey = "{key}"\n' for name, (at, key) in stored.items())
    for name, text in (("credentials.toml", credentials), ("file.key", OTHER_KEY), ("loose.key", OTHER_KEY)):
        (home / name).write_text(text)
        (home / name).chmod(0o604 if name == "loose.key" else 0o600)
    return a, b


def test_status_lists_each_account_and_where_its_key_is(
    run: Run, accounts: tuple[WireServer, WireServer], home: Path
) -> None:
    a, b = (server.base_url for server in accounts)
    kept = home / "credentials.toml"

    result = run("auth", "status")

    assert (result.code, result.err) == (0, "")
    assert [line.split("\t") for line in result.out.splitlines()] == [
        ["a", "*", a, "test", f"...cdef in {kept}", "stored"],
        ["b", "", b, "live", f"...cdef in {kept}", "stored"],
        ["file", "", b, "test", f"...3210 in api_key_file of profile file ({home / 'file.key'})", "stored"],
        [
            "loose",
            "",
            b,
            "test",
            "-",
            f"api_key_file of profile loose: {home / 'loose.key'} is accessible to other users (mode 0604)",
        ],
        ["moved", "", a, "test", "-", f"the stored key is for {b}, not for this profile's base URL"],
        ["none", "", "https://none.example.com", "live", "-", "no key"],
        [
            "orphan",
            "",
            b,
            "-",
            str(kept),
            "a key is stored, but there is no such profile; to remove the key: escrowctl auth logout -p orphan",
        ],
    ]
    assert [len(server.seen) for server in accounts] == [0, 0]


def test_status_checks_each_service_on_request(run: Run, accounts: tuple[WireServer, WireServer]) -> None:
    result = run("auth", "status", "--check", "--json")

    states = {row["profile"]: row["state"] for row in result.json}
    assert {name: states[name] for name in ("a", "b", "file")} == {
        "a": "accepted by the service",
        "b": 'list webhooks: the service replied 401 "no such key"',
        "file": "accepted by the service",
    }
    assert (result.code, result.error["code"]) == (16, "check_failed")
    assert "b, loose, moved, none, orphan" in result.error["message"]
    asked = [[(seen.target, seen.header("Authorization")) for seen in server.seen] for server in accounts]
    assert asked == [
        [("/api/v1/webhooks", f"Bearer {KEY}")],
        [("/api/v1/webhooks", f"Bearer {KEY}"), ("/api/v1/webhooks", f"Bearer {OTHER_KEY}")],
    ]
    assert KEY not in result.out + result.err
    one = run("-p", "file", "auth", "status", "--check")
    assert (one.code, one.out.count("\n")) == (0, 1)


def test_status_shows_the_environment_s_account_first(run: Run, accounts: tuple[WireServer, WireServer]) -> None:
    a = accounts[0].base_url

    def first(**environ: str) -> list[str]:
        return run("auth", "status", environ=environ).out.splitlines()[0].split("\t")

    assert first(ESCROWCTL_BASE_URL=a, ESCROWCTL_API_KEY=KEY) == [
        "(environment)",
        "",
        a,
        "test",
        "...cdef in ESCROWCTL_API_KEY",
        "set",
    ]
    assert first(ESCROWCTL_BASE_URL=a, ESCROWCTL_API_KEY="fifteen_letters")[4:] == ["ESCROWCTL_API_KEY", "set"]
    assert first(ESCROWCTL_API_KEY=KEY)[-1] == "a key without a base URL: set ESCROWCTL_BASE_URL"
    assert first(ESCROWCTL_BASE_URL=a)[-1].startswith(f"there is no API key for {a}")
    assert first(ESCROWCTL_BASE_URL=a, ESCROWCTL_API_KEY="")[-1].startswith("ESCROWCTL_API_KEY is empty")


def test_status_warns_of_stored_keys_that_others_can_read(
    run: Run, accounts: tuple[WireServer, WireServer], home: Path
) -> None:
    (home / "credentials.toml").chmod(0o640)

    result = run("auth", "status")

    assert result.code == 0
    assert "is accessible to other users (mode 0640)" in result.out.splitlines()[0]
    assert "warning: the stored keys:" in result.err
    assert [run("-p", "a", *words).code for words in (("user", "get", "u_1"), ("auth", "logout"))] == [2, 2]
    assert [len(server.seen) for server in accounts] == [0, 0]


def test_logout_removes_one_key_and_lists_the_rest(
    run: Run, accounts: tuple[WireServer, WireServer], home: Path
) -> None:
    b = accounts[1].base_url

    gone = run("auth", "logout", "-p", "b", environ={"ESCROWCTL_API_KEY": KEY})
    again = run("auth", "logout", "-p", "b")
    file = run("auth", "logout", "-p", "file")
    unknown = run("auth", "logout", "-p", "nowhere")

    assert (gone.code, gone.out) == (0, "")
    assert gone.err.splitlines() == [
        f"removed: the key of profile b for {b}, from {home / 'credentials.toml'}",
        "note: ESCROWCTL_API_KEY is still set in the environment",
    ]
    assert (again.code, again.err) == (0, "note: no key is stored for profile b, so none was removed\n")
    assert "note: profile file still reads its key from file.key" in file.err
    assert (unknown.code, unknown.out) == (2, "")
    left = (home / "credentials.toml").read_text()
    assert [name for name in ("[a]", "[b]", "[moved]", "[orphan]") if name in left] == ["[a]", "[moved]", "[orphan]"]
    assert run("auth", "logout", "-p", "orphan").code == 0


@pytest.mark.usefixtures("accounts")
def test_logout_of_all_leaves_no_key_behind(run: Run, home: Path) -> None:
    codes = [run("auth", "logout", *words).code for words in (("--all", "-p", "b"), ("--all",), ("--all",))]

    assert codes == [2, 0, 0]
    assert "sk_test" not in (home / "credentials.toml").read_text()
    assert run("-p", "b", "tx", "get", "tx_1").code == 4


def test_switch_sets_the_default_profile(run: Run, accounts: tuple[WireServer, WireServer], home: Path) -> None:
    b = accounts[1].base_url

    switched = run("auth", "switch", "b")
    unknown = run("auth", "switch", "nowhere")
    unnamed = run("auth", "switch")

    assert (switched.code, switched.out) == (0, "")
    assert switched.err == f"saved: b is now the default profile, live, {b}\n"
    assert (home / "config.toml").read_text() == SERVICES.format(a=accounts[0].base_url, b=b).replace(
        'default_profile = "a"', 'default_profile = "b"'
    )
    assert (unknown.code, unnamed.code) == (2, 2)
    assert "a, b, file, loose, moved, none." in unnamed.err


def test_switch_asks_at_a_terminal(run: Run, accounts: tuple[WireServer, WireServer], home: Path) -> None:
    result = run("auth", "switch", stdin="b\n", terminal=True)

    assert result.code == 0
    assert "  none    live   https://none.example.com\n" in result.err
    assert (home / "config.toml").read_text().startswith('default_profile = "b"\n')
    assert run("auth", "switch", stdin="", terminal=True).code == 3


# What is on the disk


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_keys_are_written_to_a_plain_file_only(run: Run, home: Path, tmp_path: Path, kind: str) -> None:
    home.mkdir(parents=True, mode=0o700)
    # It could be read as stored keys: none.
    precious = tmp_path / "precious"
    precious.write_text("# do not overwrite\n")
    precious.chmod(0o600)
    path = home / "credentials.toml"
    match kind:
        case "link":
            path.symlink_to(precious)
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path, 0o600)

    result = run(
        "auth", "login", "--base-url", "https://a.example.com", "--mode", "test", "-p", "a", "--no-check", stdin=KEY
    )

    what = {"link": "a symbolic link", "folder": "a folder", "pipe": "a named pipe"}[kind]
    assert (result.code, result.out) == (17, ""), result.err
    assert f"{path} is {what}, not a regular file: escrowctl does not store keys there." in result.err
    assert precious.read_text() == "# do not overwrite\n"
    assert KEY not in result.err + "".join(one.read_text() for one in home.iterdir() if one.is_file())


def test_a_planted_temporary_file_is_not_written_into(run: Run, home: Path, tmp_path: Path) -> None:
    home.mkdir(parents=True, mode=0o700)
    precious = tmp_path / "precious"
    precious.write_text("do not overwrite")
    (home / ".credentials.toml.new").symlink_to(precious)
    (home / ".config.toml.new").write_text("what a killed process left")

    result = run(
        "auth", "login", "--base-url", "https://a.example.com", "--mode", "test", "-p", "a", "--no-check", stdin=KEY
    )

    assert result.code == 0
    assert precious.read_text() == "do not overwrite"
    assert sorted(path.name for path in home.iterdir()) == ["config.toml", "credentials.toml"]


def test_key_file_that_is_a_pipe_is_refused_without_waiting(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "key"
    os.mkfifo(pipe, 0o600)
    result = run(
        "tx",
        "get",
        "tx_1",
        environ={"ESCROWCTL_BASE_URL": "https://a.example.com", "ESCROWCTL_API_KEY_FILE": str(pipe)},
    )
    assert (result.code, result.out) == (2, "")
    assert "is a named pipe, not a regular file" in result.err


def test_a_folder_that_cannot_be_written_keeps_the_old_key(run: Run, serve: Serve, home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes anywhere")
    server = serve(takes(KEY, OTHER_KEY))
    login(run, server, "--mode", "test", "-p", "a")
    before = files_of(home)
    home.chmod(0o500)
    result = run("-p", "a", "auth", "login", stdin=OTHER_KEY)
    home.chmod(0o700)
    assert (result.code, files_of(home)) == (17, before)


def test_no_output_of_any_of_these_has_the_key(run: Run, accounts: tuple[WireServer, WireServer], home: Path) -> None:
    said = ""
    for words in (
        ("auth", "status", "--check"),
        ("auth", "status", "--check", "--json", "--debug"),
        ("config", "list"),
        ("-p", "b", "config", "list", "--json"),
        ("-p", "a", "auth", "login", "--debug", "-v"),
        ("config", "path"),
        ("auth", "switch", "b", "--debug"),
        ("tx", "get", "tx_1", "--debug"),
        ("auth", "logout", "--debug"),
    ):
        result = run(*words, stdin=KEY)
        said += result.out + result.err
    assert [said.count(key) for key in (KEY, OTHER_KEY)] == [0, 0]
    holders = {path.name for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()}
    assert holders == {"credentials.toml"}
