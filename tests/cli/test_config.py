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

    assert settings_of(run) == BUILT_IN | {
        "profile": ("acme-test", f"default_profile in {path}"),
        "base_url": ("https://test.escrow.example.com", here),
        "api_key": (
            None,
            "there is no API key for https://test.escrow.example.com (the base URL from default profile acme-test).",
        ),
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
            (),
            {"ESCROWCTL_PROFILE": "acme-live"},
            {"profile": ("acme-live", "ESCROWCTL_PROFILE"), "base_url": ("{live}", "profile acme-live in {file}")},
        ),
        (
            ("--base-url", "http://127.0.0.1:9"),
            {"ESCROWCTL_API_KEY": ""},
            {"profile": (None, "built in"), "mode": ("test", "built in, for loopback")},
        ),
        (
            (),
            {"ESCROWCTL_BASE_URL": "https://e.example.com", "ESCROWCTL_API_KEY": ""},
            {"api_key": (None, "ESCROWCTL_API_KEY is empty: it should hold the API key.")},
        ),
    ],
    ids=["profile and timeout", "variable", "loopback", "empty key"],
)
def test_each_origin_is_named(
    run: Run,
    write_config: WriteConfig,
    line: tuple[str, ...],
    environ: dict[str, str],
    expected: dict[str, tuple[Any, str]],
) -> None:
    path = write_config(ACME)
    found = settings_of(run, *line, environ=environ)

    def fill(value: Any) -> Any:
        return value.format(file=path, live="https://escrow.example.com") if isinstance(value, str) else value

    assert {name: found[name] for name in expected} == {
        name: (fill(value), fill(origin)) for name, (value, origin) in expected.items()
    }


def test_config_list_reports_contradictions_and_invalid_files(run: Run, write_config: WriteConfig) -> None:
    write_config(ACME)
    contradiction = run("-p", "acme-live", "config", "list", environ={"ESCROWCTL_BASE_URL": "https://x.example.com"})
    assert (contradiction.code, contradiction.out) == (2, "")
    write_config("[profiles.a]\nbase_url = 1\n")
    broken = run("config", "list")
    assert (broken.code, broken.out) == (2, "")


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
    ("line", "key", "printed"),
    [
        ((), "base_url", "https://test.escrow.example.com"),
        (("-p", "acme-live"), "mode", "live"),
        ((), "status.released", "released,paid_out"),
        ((), "read_only", "false"),
        ((), "profiles.acme-live.timeout", "12.5"),
        ((), "profiles.acme-live.api_prefix", "/api/v1"),
    ],
)
def test_one_value_is_printed_bare(
    run: Run, write_config: WriteConfig, line: tuple[str, ...], key: str, printed: str
) -> None:
    write_config(ACME)
    result = run(*line, "config", "get", key)
    assert (result.code, result.out, result.err) == (0, f"{printed}\n", "")


@pytest.mark.parametrize(
    ("key", "code", "part"),
    [
        ("reply.id", 6, "reply.id is not set."),
        ("profiles.acme-live.reply.id", 6, "is not set."),
        ("reply", 2, '"reply" is a table of settings'),
        ("profiles.nowhere.mode", 2, 'there is no profile "nowhere"'),
        ("status.relesed", 2, 'there is no setting "status.relesed"; the nearest is "status.released".'),
        (
            "api_key",
            2,
            "escrowctl never prints an API key.\nhint: to see where the key comes from: escrowctl config list",
        ),
    ],
)
def test_setting_that_cannot_be_printed_is_reported_with_a_reason(
    run: Run, write_config: WriteConfig, key: str, code: int, part: str
) -> None:
    write_config(ACME)
    result = run("config", "get", key)
    assert (result.code, result.out) == (code, "")
    assert part in result.err


# Setting


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("reply.status", "/escrowState"), 'reply.status = "/escrowState"'),
        (("status.released", "SETTLED", "PAID OUT"), 'status.released = ["SETTLED", "PAID OUT"]'),
        (("status.released", "SETTLED,PAID"), 'status.released = ["SETTLED", "PAID"]'),
        (
            ("status.pending", "PAYOUT_QUEUED"),
            'status.pending = ["pending", "processing", "releasing", "queued", "in_progress", "PAYOUT_QUEUED"]',
        ),
        (("status.failed", '["VOID", "LOST, FOUND"]'), 'status.failed = ["VOID", "LOST, FOUND"]'),
        (("status.failed", "[]"), "status.failed = []"),
        (("status.failed", "404"), 'status.failed = ["404"]'),
        (("read_only", "true"), "read_only = true"),
        (("timeout", "0.5"), "timeout = 0.5"),
        (("timeout", "25e-1"), "timeout = 2.5"),
        (("caps.USD", "99.95"), 'caps.USD = "99.95"'),
        (("caps.USD", "5000"), "caps.USD = 5000"),
        (("account", "2026-01-01"), 'account = "2026-01-01"'),
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

    value = line.partition(" = ")[2]
    assert (result.code, result.out) == (0, "")
    assert result.err == f"saved: profiles.acme-test.{words[0]} = {value} in {path}\n"
    found: Any = tomllib.loads(path.read_text())["profiles"]["acme-test"]
    wanted: Any = tomllib.loads(line)
    for name in words[0].split("."):
        found, wanted = found[name], wanted[name]
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("read_only", "yes"), "read_only: it should be true or false"),
        (("timeout", "soon"), "timeout: it should be seconds above 0 and at most 3600"),
        (("caps", "{EUR = 5}"), "is a table of settings"),
        (("mode", "prod"), 'mode: it should be "test" or "live"'),
        (("mode", "test", "live"), "takes one value, not 2"),
        (("reply.id", "escrowRef"), "reply.id: it should be a JSON Pointer such as /data/id"),
        (("caps.EUR", "50.001"), 'caps.EUR: the amount "50.001" has too many decimals: EUR has at most 2'),
        (("caps.eur", "5"), 'caps.eur: the currency "eur" is not written as a currency code: write EUR'),
        (("api_prefix", "v1"), "api_prefix: it should be a path such as /api/v1"),
        (("base_url", "http://escrow.example.com"), "is plain http to another host"),
        (("status.released", "a,,b"), "has an empty item"),
        (("journal_id", "j1"), "journal_id: it should be a journal's id"),
        (("reply.idd", "/x"), 'there is no setting "reply.idd"; the nearest is "reply.id"'),
        (("profiles.a b.mode", "test"), "names no profile"),
        (("profiles.nowhere.mode", "test"), 'there is no profile "nowhere"'),
        (("default_profile", "nowhere"), "there is no such profile (the profiles are: acme-live, acme-test)"),
        (("ca_bundle", "/etc/ssl/own.pem"), "set the variable ESCROWCTL_CA_BUNDLE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_value_is_refused_and_the_file_unchanged(
    run: Run, write_config: WriteConfig, words: tuple[str, ...], part: str
) -> None:
    path = write_config(ACME)

    result = run("config", "set", *words)

    assert (result.code, result.out) == (2, ""), result.err
    assert part in result.err
    assert path.read_text() == ACME
    assert sorted(one.name for one in path.parent.iterdir()) == ["config.toml"]


@pytest.mark.parametrize("key", ["api_key", "TOKEN", "profiles.acme-test.api_key"])
def test_config_set_refuses_a_key_and_does_not_show_it(run: Run, write_config: WriteConfig, key: str) -> None:
    path = write_config(ACME)

    result = run("config", "set", key, "sk_live_typed_by_mistake", "--debug")

    assert (result.code, result.out) == (2, "")
    assert "API keys are accepted neither as arguments nor in config.toml" in result.err
    assert "auth login" in result.err
    assert "sk_live_typed_by_mistake" not in result.err
    assert path.read_text() == ACME


@pytest.mark.parametrize("name", ["api_key", "token"])
def test_key_in_config_toml_is_refused_and_not_shown(run: Run, write_config: WriteConfig, name: str) -> None:
    write_config(f'[profiles.a]\nbase_url = "https://a.example.com"\n{name} = "sk_live_in_the_wrong_file"\n')

    result = run("-p", "a", "tx", "get", "tx_1", "--debug")

    assert (result.code, result.out) == (2, "")
    assert f"profiles.a.{name}: an API key does not belong in config.toml." in result.err
    assert "sk_live_in_the_wrong_file" not in result.err
    taken_out = run("config", "unset", f"profiles.a.{name}")
    assert taken_out.code == 0, taken_out.err


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
    name = "profiles.acme-live"
    for words in (("set", "mode", "live"), ("unset", "mode"), ("unset", name), ("get", f"{name}.mode")):
        result = run("--sandbox", "config", *words)
        assert (result.code, result.out) == (2, "")
        assert "the sandbox does not use config.toml: leave --sandbox out." in result.err
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

    assert result.code == 0
    assert result.err.splitlines() == [
        f"saved: profiles.acme-live is no longer set in {path}",
        "note: the key of profile acme-live is still stored",
        "hint: to remove it: escrowctl auth logout -p acme-live",
    ]
    assert path.read_text() == ACME.partition("[profiles.acme-live]")[0].rstrip("\n") + "\n\n"


def test_all_profiles_are_not_unset_at_once(run: Run, write_config: WriteConfig) -> None:
    path = write_config(ACME)

    result = run("config", "unset", "profiles")

    assert (result.code, result.out, path.read_text()) == (2, "", ACME)
    assert "name one, such as profiles.NAME." in result.err


def test_moved_profile_reports_that_its_key_stays(run: Run, write_config: WriteConfig, home: Path) -> None:
    write_config(ACME)
    (home / "credentials.toml").write_text(
        '[acme-live]\norigin = "https://escrow.example.com"\nkey = "sk_live_0123456789"\n'
    )
    (home / "credentials.toml").chmod(0o600)

    moved = run("config", "set", "profiles.acme-live.base_url", "https://new.example.com", "-q")
    asked = run("-p", "acme-live", "tx", "get", "tx_1")

    assert moved.err == (
        "note: escrowctl sends the stored key of profile acme-live only to https://escrow.example.com\n"
        "hint: to store one for https://new.example.com: escrowctl auth login -p acme-live\n"
    )
    assert (asked.code, asked.out) == (4, "")


def test_profile_with_a_key_file_is_not_moved(run: Run, write_config: WriteConfig) -> None:
    text = ACME + 'api_key_file = "acme-live.key"\n'
    path = write_config(text)
    moved = ("config", "set", "profiles.acme-live.base_url", "https://new.example.com")

    refused = run(*moved)
    deeper = run("-p", "acme-live", "config", "set", "base_url", "https://escrow.example.com/base")

    assert (refused.code, refused.out, deeper.code) == (2, "", 0)
    assert refused.err.splitlines() == [
        "error: the API key in acme-live.key is for https://escrow.example.com: escrowctl does not send it to "
        "https://new.example.com.",
        "hint: first:                                       escrowctl config unset profiles.acme-live.api_key_file",
        "      then:                                        "
        "escrowctl config set profiles.acme-live.base_url https://new.example.com",
        "      if a file contains the key for the new URL:  escrowctl config set profiles.acme-live.api_key_file FILE",
    ]
    assert path.read_text() == text.replace("https://escrow.example.com", "https://escrow.example.com/base")
    assert [run("config", "unset", "profiles.acme-live.api_key_file").code, run(*moved).code] == [0, 0]
    assert 'base_url = "https://new.example.com"' in path.read_text()


def test_misspelt_setting_can_be_unset_by_name(run: Run, write_config: WriteConfig) -> None:
    path = write_config('[profiles.a]\nbase_url = "https://a.example.com"\nreed_only = true\n')
    told = run("-p", "a", "tx", "get", "tx_1")
    assert told.code == 2
    assert 'profiles.a.reed_only: there is no such setting; the nearest is "read_only".' in told.err

    assert run("config", "unset", "profiles.a.reed_only").code == 0
    assert path.read_text() == '[profiles.a]\nbase_url = "https://a.example.com"\n'


def test_key_file_of_an_unknown_user_is_no_defect(run: Run, write_config: WriteConfig) -> None:
    write_config('[profiles.a]\nbase_url = "https://x.example.com"\napi_key_file = "~nosuchuser/key"\n')

    assert [run("config", "path").code, run("-p", "a", "tx", "get", "tx_1").code] == [0, 2]
