"""`escrowctl config`: effective settings with their sources, and changes."""

import stat
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from escrowctl.journal.opening import find_place, open_journal

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


VALUES = {
    **dict.fromkeys(["profile", "base_url", "api_key", "mode", "api_key_file", "reference_field", "account"]),
    **dict.fromkeys(["reply.id", "reply.status", "reply.amount", "reply.currency", "webhook.signature_header"]),
    **dict.fromkeys(["service_id", "journal_id", "journal", "ca_bundle", "proxy", "default_profile"]),
    "timeout": {"read": 30, "write": 60},
    "api_prefix": "/api/v1",
    "read_only": False,
    "caps": {},
    "status.released": [],
    "status.pending": ["pending", "processing", "releasing", "queued", "in_progress"],
    "status.failed": ["failed", "declined", "rejected", "cancelled", "canceled"],
    "webhook.url_field": "url",
    "webhook.events_field": "events",
    "webhook.scheme": "standard",
    "currencies": [],
    "idempotency": "none",
    "retry_throttled": False,
}
BUILT_IN: dict[str, tuple[Any, str]] = {name: (value, "built in") for name, value in VALUES.items()}


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


def test_option_of_the_line_is_listed_as_the_origin(run: Run, write_config: WriteConfig) -> None:
    write_config(ACME)

    found = settings_of(run, "-p", "acme-live", "--timeout", "3")

    origins = {"profile": ("acme-live", "--profile"), "timeout": (3, "--timeout"), "mode": ("live", "built in")}
    assert {name: found[name] for name in origins} == origins


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
    names = {"config": "config.toml", "credentials": "credentials.toml", "state": "state", "cache": "cache"}
    paths = {name: str(home / path) for name, path in names.items()} | {"journal": str(home / "state" / "journal.db")}
    assert (before.code, before.json) == (0, paths | {"journal_id": None})
    assert not home.exists()

    open_journal(find_place(home / "state"), now=lambda: datetime.now(UTC)).close()

    after = run("config", "path", "--json").json
    assert after == paths | {"journal_id": after["journal_id"]}
    assert len(after["journal_id"]) == 36
    assert run("--config", "/x/y.toml", "config", "path").out.splitlines()[0] == "config\t/x/y.toml"


def test_paths_are_printed_although_the_journal_cannot_be_read(run: Run, home: Path) -> None:
    (home / "state").mkdir(parents=True, mode=0o700)
    (home / "state" / "journal.db").write_text("not a database")

    result = run("config", "path", "--json")

    assert (result.code, result.json["journal_id"]) == (0, None)
    assert "journal_unusable" in result.err


def test_one_value_is_printed_bare(run: Run, write_config: WriteConfig) -> None:
    write_config(ACME)
    keys = ("base_url", "status.released", "read_only", "profiles.acme-live.timeout", "profiles.acme-live.api_prefix")

    printed = [run("config", "get", key).out for key in keys]

    assert printed == ["https://test.escrow.example.com\n", "released,paid_out\n", "false\n", "12.5\n", "/api/v1\n"]


@pytest.mark.parametrize(
    ("key", "code"),
    [("reply.id", 6), ("reply", 2), ("profiles.nowhere.mode", 2), ("status.relesed", 2), ("api_key", 2)],
)
def test_setting_that_cannot_be_printed_is_reported(run: Run, write_config: WriteConfig, key: str, code: int) -> None:
    write_config(ACME)

    result = run("config", "get", key)

    assert (result.code, result.out) == (code, "")


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
        ("base_url", "http://escrow.example.com"),
        ("status.released", "a,,b"),
        ("profiles.acme-test.status.pending", "[[1]]"),
        ("reply.idd", "/x"),
        ("profiles.a b.mode", "test"),
        ("profiles.nowhere.mode", "test"),
        ("default_profile", "nowhere"),
        ("ca_bundle", "/etc/ssl/own.pem"),
    ],
    ids=" ".join,
)
def test_invalid_value_leaves_the_file_unchanged(run: Run, write_config: WriteConfig, words: tuple[str, ...]) -> None:
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
