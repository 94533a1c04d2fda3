"""`escrowctl config`: effective settings with their sources, and changes."""

import stat
import threading
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from escrowctl.config.editing import ConfigEditor
from escrowctl.journal.opening import open_journal
from escrowctl.runtime import Runtime

WriteConfig = Callable[[str], Path]

ACME = """\
default_profile = "acme-test"

[profiles.acme-test]
base_url = "https://test.escrow.example.com"
mode = "test"
status.released = ["released", "paid_out"]
caps.EUR = "5000"

[profiles.acme-live]
base_url = "https://escrow.example.com"
timeout = 12.5
"""


def settings_of(run: Run, *line: str, **keywords: Any) -> dict[str, tuple[Any, str]]:
    """Return setting -> (value, origin) as `config list --json` prints them."""
    result = run(*line, "config", "list", "--json", **keywords)
    assert (result.code, result.err) == (0, "")
    return {row["setting"]: (row["value"], row["origin"]) for row in result.json}


BUILT_IN: dict[str, tuple[Any, str]] = {
    "profile": (None, "built in"),
    "base_url": (None, "built in"),
    "api_key": (None, "built in"),
    "mode": (None, "built in"),
    "timeout": ({"read": 30, "write": 60}, "built in"),
    "api_prefix": ("/api/v1", "built in"),
    "api_key_file": (None, "built in"),
    "read_only": (False, "built in"),
    "caps": ({}, "built in"),
    "status.released": ([], "built in"),
    "status.pending": (["pending", "processing", "releasing", "queued", "in_progress"], "built in"),
    "status.failed": (["failed", "declined", "rejected", "cancelled", "canceled"], "built in"),
    "reply.id": (None, "built in"),
    "reply.status": (None, "built in"),
    "reply.amount": (None, "built in"),
    "reply.currency": (None, "built in"),
    "webhook.url_field": ("url", "built in"),
    "webhook.events_field": ("events", "built in"),
    "webhook.scheme": ("standard", "built in"),
    "webhook.signature_header": (None, "built in"),
    "reference_field": (None, "built in"),
    "currencies": ([], "built in"),
    "idempotency": ("none", "built in"),
    "retry_throttled": (False, "built in"),
    "account": (None, "built in"),
    "service_id": (None, "built in"),
    "journal_id": (None, "built in"),
    "ca_bundle": (None, "built in"),
    "proxy": (None, "built in"),
    "default_profile": (None, "built in"),
}


# Listing


def test_settings_are_listed_with_their_defaults_without_configuration(run: Run) -> None:
    assert settings_of(run) == BUILT_IN


def test_default_profile_is_listed_with_its_file(run: Run, write_config: WriteConfig) -> None:
    path = write_config(ACME)
    here = f"profile acme-test in {path}"

    found = settings_of(run)

    origin = found["api_key"][1]
    assert "https://test.escrow.example.com" in origin
    assert found == BUILT_IN | {
        "profile": ("acme-test", f"default_profile in {path}"),
        "base_url": ("https://test.escrow.example.com", here),
        "api_key": (None, origin),
        "mode": ("test", here),
        "caps": ({"EUR": "5000"}, here),
        "status.released": (["released", "paid_out"], here),
        "default_profile": ("acme-test", str(path)),
    }


def test_source_that_overrides_the_file_is_listed(run: Run, write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config(ACME)
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    environ = {
        "ESCROWCTL_BASE_URL": "https://env.example.com/base/",
        "ESCROWCTL_API_KEY": "sk_env_0123456789",
        "ESCROWCTL_CA_BUNDLE": str(bundle),
        "ESCROWCTL_JOURNAL_ID": "00000000-0000-0000-0000-000000000001",
        "https_proxy": "http://user:secret@proxy.example.com:3128",
    }

    assert settings_of(run, environ=environ) == BUILT_IN | {
        "base_url": ("https://env.example.com/base", "ESCROWCTL_BASE_URL"),
        "api_key": ("***", "ESCROWCTL_API_KEY"),
        "mode": ("live", "built in"),
        "journal_id": ("00000000-0000-0000-0000-000000000001", "ESCROWCTL_JOURNAL_ID"),
        "ca_bundle": (str(bundle), "ESCROWCTL_CA_BUNDLE"),
        "proxy": ("http://***@proxy.example.com:3128", "https_proxy"),
        "default_profile": ("acme-test", str(path)),
    }


@pytest.mark.parametrize(
    ("line", "environ", "expected"),
    [
        (
            ("-p", "acme-live", "--timeout", "3"),
            {},
            {"profile": ("acme-live", "--profile"), "timeout": (3, "--timeout"), "mode": ("live", "built in")},
        ),
        (
            ("--base-url", "http://127.0.0.1:9"),
            {"ESCROWCTL_PROFILE": "acme-live", "ESCROWCTL_API_KEY": ""},
            {"base_url": ("http://127.0.0.1:9", "--base-url"), "mode": ("test", "built in, for loopback")},
        ),
    ],
    ids=["profile and timeout", "loopback"],
)
def test_each_origin_is_named(
    run: Run,
    write_config: WriteConfig,
    line: tuple[str, ...],
    environ: dict[str, str],
    expected: dict[str, tuple[Any, str]],
) -> None:
    write_config(ACME)

    found = settings_of(run, *line, environ=environ)

    assert {name: found[name] for name in expected} == expected


def test_sandbox_lists_its_own_settings_despite_configuration(run: Run, write_config: WriteConfig) -> None:
    write_config("this is not TOML")
    found = settings_of(run, "--sandbox", environ={"ESCROWCTL_BASE_URL": "x", "ESCROWCTL_API_KEY": ""})

    assert set(found) == set(BUILT_IN)
    assert found["default_profile"] == (None, "built in")
    assert found["base_url"] == ("(in this process)", "--sandbox")
    assert found["api_key"] == ("***", "the sandbox's own store")
    assert {origin for _, origin in found.values()} == {"--sandbox", "the sandbox's own store", "built in"}


def test_config_path_prints_paths_and_the_journal_id(run: Run, home: Path) -> None:
    before = run("config", "path", "--json")
    expected: dict[str, Any] = {
        "config": str(home / "config.toml"),
        "credentials": str(home / "credentials.toml"),
        "state": str(home / "state"),
        "cache": str(home / "cache"),
        "journal": str(home / "state" / "journal.db"),
        "journal_id": None,
    }
    assert (before.code, before.json) == (0, expected)
    assert not home.exists()

    open_journal(home / "state", now=lambda: datetime.now(UTC)).close()
    after = run("config", "path", "--json").json
    assert len(after.pop("journal_id")) == 36
    expected.pop("journal_id")
    assert after == expected
    elsewhere = run("--config", "/x/y.toml", "config", "path")
    assert elsewhere.out.splitlines()[0] == "config\t/x/y.toml"


def test_paths_are_printed_although_the_journal_cannot_be_read(run: Run, home: Path) -> None:
    (home / "state").mkdir(parents=True, mode=0o700)
    (home / "state" / "journal.db").write_text("not a database")

    result = run("config", "path", "--json")

    assert (result.code, result.json["journal_id"]) == (0, None)
    assert "journal_unusable" in result.err


@pytest.mark.parametrize("name", ["config.toml", "credentials.toml"])
def test_broken_and_circular_links_are_not_a_defect(run: Run, home: Path, name: str) -> None:
    home.mkdir(parents=True, mode=0o700)
    (home / name).symlink_to(home / name)
    login = ("auth", "login", "--base-url", "https://a.example.com", "--mode", "test", "-p", "a", "--no-check")
    codes = [
        run(*words, stdin="sk_key").code
        for words in (("config", "set", "profiles.a.base_url", "https://a.example.com"), login, ("auth", "status"))
    ]
    assert 1 not in codes
    assert codes[1] == (17 if name == "credentials.toml" else 2)


# Getting


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("base_url", "https://test.escrow.example.com"),
        ("status.released", "released,paid_out"),
        ("read_only", "false"),
        ("profiles.acme-live.timeout", "12.5"),
        ("profiles.acme-live.api_prefix", "/api/v1"),
    ],
)
def test_one_value_is_printed_bare(run: Run, write_config: WriteConfig, key: str, printed: str) -> None:
    write_config(ACME)

    result = run("config", "get", key)

    assert (result.code, result.out, result.err) == (0, f"{printed}\n", "")


@pytest.mark.parametrize(
    ("key", "code"),
    [("reply.id", 6), ("reply", 2), ("profiles.nowhere.mode", 2), ("status.relesed", 2), ("api_key", 2)],
)
def test_setting_that_cannot_be_printed_is_reported(run: Run, write_config: WriteConfig, key: str, code: int) -> None:
    write_config(ACME)

    result = run("config", "get", key)

    assert (result.code, result.out) == (code, "")


# Setting


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("reply.status", "/escrowState"), 'reply.status = "/escrowState"'),
        (("status.released", "SETTLED", "PAID OUT"), 'status.released = ["SETTLED", "PAID OUT"]'),
        (("status.released", "SETTLED,PAID"), 'status.released = ["SETTLED", "PAID"]'),
        (
            ("status.pending", "PAYOUT"),
            'status.pending = ["pending", "processing", "releasing", "queued", "in_progress", "PAYOUT"]',
        ),
        (("status.failed", '["VOID", "LOST, FOUND"]'), 'status.failed = ["VOID", "LOST, FOUND"]'),
        (("status.failed", "[]"), "status.failed = []"),
        (("read_only", "true"), "read_only = true"),
        (("timeout", "0.5"), "timeout = 0.5"),
        (("caps.USD", "99.95"), 'caps.USD = "99.95"'),
        (("reference_field", "5\nread_only = true"), r'reference_field = "5\nread_only = true"'),
        (("service_id", "123"), 'service_id = "123"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_setting_is_written_with_its_type(
    run: Run, write_config: WriteConfig, words: tuple[str, ...], line: str
) -> None:
    path = write_config(ACME)

    result = run("-p", "acme-test", "config", "set", *words)

    assert (result.code, result.out) == (0, "")
    found: Any = tomllib.loads(path.read_text())["profiles"]["acme-test"]
    wanted: Any = tomllib.loads(line)
    for name in words[0].split("."):
        found, wanted = found[name], wanted[name]
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "words",
    [
        ("read_only", "yes"),
        ("caps", "{EUR = 5}"),
        ("mode", "test", "live"),
        ("reply.id", "escrowRef"),
        ("caps.EUR", "50.001"),
        ("base_url", "http://escrow.example.com"),
        ("status.released", "a,,b"),
        ("reply.idd", "/x"),
        ("profiles.a b.mode", "test"),
        ("profiles.nowhere.mode", "test"),
        ("default_profile", "nowhere"),
        ("ca_bundle", "/etc/ssl/own.pem"),
    ],
    ids=" ".join,
)
def test_invalid_value_is_refused_and_the_file_unchanged(
    run: Run, write_config: WriteConfig, words: tuple[str, ...]
) -> None:
    path = write_config(ACME)

    result = run("config", "set", *words)

    assert (result.code, result.out) == (2, ""), result.err
    assert path.read_text() == ACME
    assert sorted(one.name for one in path.parent.iterdir()) == ["config.toml"]


@pytest.mark.parametrize("key", ["TOKEN", "profiles.acme-test.api_key"])
def test_config_set_refuses_a_key_and_does_not_show_it(run: Run, write_config: WriteConfig, key: str) -> None:
    path = write_config(ACME)

    result = run("config", "set", key, "sk_live_typed_by_mistake", "--debug")

    assert (result.code, result.out) == (2, "")
    assert ("auth login" in result.err, "sk_live_typed_by_mistake" in result.err) == (True, False)
    assert path.read_text() == ACME


def test_key_in_config_toml_is_refused_and_not_shown(run: Run, write_config: WriteConfig) -> None:
    write_config('[profiles.a]\nbase_url = "https://a.example.com"\ntoken = "sk_live_in_the_wrong_file"\n')

    result = run("-p", "a", "tx", "get", "tx_1", "--debug")

    assert (result.code, result.out) == (2, "")
    assert "sk_live_in_the_wrong_file" not in result.err
    assert run("config", "unset", "profiles.a.token").code == 0


def test_a_new_profile_begins_with_its_base_url(run: Run, home: Path) -> None:
    made = run("config", "set", "profiles.new.base_url", "https://new.example.com")
    chosen = run("config", "set", "default_profile", "new")

    assert (made.code, chosen.code) == (0, 0)
    assert (home / "config.toml").read_text() == (
        'default_profile = "new"\n\n[profiles.new]\nbase_url = "https://new.example.com"\n'
    )
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_another_config_file_is_the_one_that_is_changed(run: Run, write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config(ACME)
    other = tmp_path / "other.toml"

    assert run("--config", str(other), "config", "set", "profiles.x.base_url", "https://x.example.com").code == 0
    assert run("config", "set", "profiles.x.mode", "test", environ={"ESCROWCTL_CONFIG": str(other)}).code == 0

    assert other.read_text() == '[profiles.x]\nbase_url = "https://x.example.com"\nmode = "test"\n'
    assert path.read_text() == ACME


def test_the_sandbox_has_no_settings_to_change(run: Run, write_config: WriteConfig) -> None:
    path = write_config(ACME)
    lines = (("set", "mode", "live"), ("unset", "profiles.acme-live"), ("get", "profiles.acme-live.mode"))

    results = [run("--sandbox", "config", *words) for words in lines]

    assert [(result.code, result.out) for result in results] == [(2, "")] * 3
    assert path.read_text() == ACME


# The file


def test_a_symbolic_link_stays_one_and_the_mode_stays(run: Run, home: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "escrowctl.toml"
    target.write_text(ACME)
    target.chmod(0o640)
    home.mkdir(parents=True, mode=0o700)
    (home / "config.toml").symlink_to(target)

    assert run("config", "set", "read_only", "true").code == 0

    assert (home / "config.toml").is_symlink()
    assert "read_only = true" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in dotfiles.iterdir()] == ["escrowctl.toml"]


@pytest.mark.thorough
def test_concurrent_config_changes_are_both_stored(run: Run, write_config: WriteConfig) -> None:
    path = write_config(ACME)

    # Signals are the main thread's; the editor itself is what is raced.
    def edit(number: int) -> None:
        ConfigEditor(path, Runtime()).set(("profiles", f"p{number}", "base_url"), f"https://p{number}.example.com")

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    profiles = tomllib.loads(path.read_text())["profiles"]
    assert sorted(profiles) == sorted(["acme-live", "acme-test", *(f"p{number}" for number in range(16))])


def test_unset_profile_leaves_its_key_and_reports_it(run: Run, write_config: WriteConfig, home: Path) -> None:
    path = write_config(ACME)
    (home / "credentials.toml").write_text(
        '[acme-live]\norigin = "https://escrow.example.com"\nkey = "sk_live_0123456789"\n'
    )
    (home / "credentials.toml").chmod(0o600)

    result = run("config", "unset", "profiles.acme-live")

    assert (result.code, "escrowctl auth logout -p acme-live" in result.err) == (0, True)
    assert path.read_text() == ACME.partition("[profiles.acme-live]")[0].rstrip("\n") + "\n\n"


def test_profile_with_a_key_file_is_not_moved(run: Run, write_config: WriteConfig) -> None:
    text = ACME + 'api_key_file = "acme-live.key"\n'
    path = write_config(text)
    moved = ("config", "set", "profiles.acme-live.base_url", "https://new.example.com")

    refused = run(*moved)
    deeper = run("-p", "acme-live", "config", "set", "base_url", "https://escrow.example.com/base")

    assert (refused.code, refused.out, deeper.code) == (2, "", 0)
    assert path.read_text() == text.replace("https://escrow.example.com", "https://escrow.example.com/base")
    assert [run("config", "unset", "profiles.acme-live.api_key_file").code, run(*moved).code] == [0, 0]
    assert 'base_url = "https://new.example.com"' in path.read_text()


def test_misspelt_setting_can_be_unset_by_name(run: Run, write_config: WriteConfig) -> None:
    path = write_config('[profiles.a]\nbase_url = "https://a.example.com"\nreed_only = true\n')
    told = run("-p", "a", "tx", "get", "tx_1")
    assert told.code == 2
    assert '"read_only"' in told.err

    assert run("config", "unset", "profiles.a.reed_only").code == 0
    assert path.read_text() == '[profiles.a]\nbase_url = "https://a.example.com"\n'
