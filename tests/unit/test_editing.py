"""Changing config.toml: in any layout, exactly the one setting changes and its comments stay."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from escrowctl.config.editing import ConfigEditor
from escrowctl.errors import EscrowctlError
from escrowctl.runtime import Runtime

BEFORE = """\
# the services of the payments team
default_profile = "acme-test" # the safe one

# rehearsals
[profiles.acme-test] # test
base_url = "https://test.escrow.example.com"   # moved in May
mode = 'test'
status.released = ["released"]

# real money:
# ask before you change this
[profiles.acme-live]
base_url = "https://escrow.example.com"
mode = "live"
reply.id = "/escrowRef"

[profiles.acme-live.webhook]
events_field = "topics"
# the end
"""


def edit(tmp_path: Path, text: str, *changes: tuple[str, Any]) -> str:
    """Return the text after these settings were set, or unset where the value is None."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    editor = ConfigEditor(path, Runtime())
    for name, value in changes:
        place = tuple(name.split("."))
        editor.unset(place) if value is None else editor.set(place, value)
    return path.read_text()


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("default_profile", "acme-live", 'default_profile = "acme-test"', 'default_profile = "acme-live"'),
        ("profiles.acme-test.mode", "live", "mode = 'test'", 'mode = "live"'),
        (
            "profiles.acme-test.status.released",
            ["SETTLED", "PAID"],
            'status.released = ["released"]',
            'status.released = ["SETTLED", "PAID"]',
        ),
        (
            "profiles.acme-live.reply.status",
            "/s",
            'reply.id = "/escrowRef"\n',
            'reply.id = "/escrowRef"\nreply.status = "/s"\n',
        ),
        ("profiles.acme-live.reply.id", None, 'reply.id = "/escrowRef"\n', ""),
        ("default_profile", None, 'default_profile = "acme-test" # the safe one\n', ""),
        (
            "profiles.new.base_url",
            "https://new.example.com",
            "# the end\n",
            '# the end\n\n[profiles.new]\nbase_url = "https://new.example.com"\n',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value and "\n" not in value else "",
)
def test_one_setting_changes_and_the_rest_of_the_text_stays(
    tmp_path: Path, name: str, value: Any, old: str, new: str
) -> None:
    assert BEFORE.count(old) == 1
    assert edit(tmp_path, BEFORE, (name, value)) == BEFORE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "name", "value", "after"),
    [
        ("", "profiles.a.base_url", "https://a.example.com", '[profiles.a]\nbase_url = "https://a.example.com"\n'),
        (
            'profiles = { a = { base_url = "https://a.example.com" } }\n',
            "profiles.a.reply.id",
            "/x",
            'profiles = { a = { base_url = "https://a.example.com", reply = {id = "/x"}} }\n',
        ),
        (
            'profiles.a.base_url = "https://a.example.com"\n',
            "profiles.a.read_only",
            True,
            'profiles.a.base_url = "https://a.example.com"\nprofiles.a.read_only = true\n',
        ),
        ('[profiles.a]\r\nbase_url = "https://a.example.com"\r\n', "profiles.a.read_only", True, None),
    ],
    ids=["empty", "inline", "dotted", "crlf"],
)
def test_other_layouts_are_preserved(tmp_path: Path, text: str, name: str, value: Any, after: str | None) -> None:
    found = edit(tmp_path, text, (name, value))

    if after is not None:
        assert found == after
    place = name.split(".")
    read: Any = tomllib.loads(found)
    for part in place:
        read = read[part]
    assert read == value


def test_profile_in_several_places_is_removed_completely_or_not_at_all(tmp_path: Path) -> None:
    base_url = 'base_url = "https://a.example.com"\n'
    text = f"[profiles.a]\n{base_url}[profiles.b]\n{base_url}# of a\n[profiles.a.webhook]\nurl_field = 'x'\n"

    after = edit(tmp_path, text, ("profiles.a", None))

    assert tomllib.loads(after) == tomllib.loads(f"[profiles.b]\n{base_url}")


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("profiles.acme-test.base_url", "http://escrow.example.com", "plain http"),
        ("profiles.acme-test.base_url", None, "profiles.acme-test.base_url: it is missing"),
        ("profiles.acme-test.mode", "prod", "profiles.acme-test.mode: it should be test or live"),
        ("default_profile", "nowhere", 'default_profile would be "nowhere", but there is no such profile'),
        ("profiles.acme-test", None, 'default_profile would be "acme-test", but there is no such profile'),
        ("profiles.acme-test.read_only", None, "profiles.acme-test.read_only is not set"),
        ("profiles.new.mode", "test", "profiles.new.base_url: it is missing"),
    ],
)
def test_edit_that_makes_the_file_invalid_changes_nothing(tmp_path: Path, name: str, value: Any, part: str) -> None:
    with pytest.raises(EscrowctlError) as caught:
        edit(tmp_path, BEFORE, (name, value))

    assert int(caught.value.code.exit_code) == 2
    assert part in caught.value.message
    assert (tmp_path / "config.toml").read_text() == BEFORE
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_an_edit_that_changes_anything_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The editor's library is not trusted with the rest of the file: what it made is read again."""
    made = tomlkit.dumps

    def forgetful(document: Any) -> str:
        return made(document).replace('mode = "live"\n', "")

    monkeypatch.setattr(tomlkit, "dumps", forgetful)
    with pytest.raises(EscrowctlError) as caught:
        edit(tmp_path, BEFORE, ("profiles.acme-test.timeout", 5))

    assert "escrowctl to change profiles.acme-test.timeout" in caught.value.message
    assert (tmp_path / "config.toml").read_text() == BEFORE
