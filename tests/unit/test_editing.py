"""Changing config.toml: in any layout, exactly the one setting changes and its comments stay."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
        (
            "profiles.acme-test.base_url",
            "https://t.example.com",
            'base_url = "https://test.escrow.example.com"',
            'base_url = "https://t.example.com"',
        ),
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
        ("profiles.acme-test.status.released", None, 'status.released = ["released"]\n', ""),
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


SCATTERED = """\
# top
[profiles.a]
base_url = "https://a.example.com"
# after a

# for b
[profiles.b]
base_url = "https://b.example.com"
[profiles.b.reply]
id = "/id"
# for c
[profiles.c]
base_url = "https://c.example.com"
# for the rest of a
[profiles.a.reply]
id = "/id"
# the end
"""


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_profile_is_removed_from_any_layout(tmp_path: Path, name: str) -> None:
    after = edit(tmp_path, SCATTERED, (f"profiles.{name}", None))

    expected = tomllib.loads(SCATTERED)
    del expected["profiles"][name]
    assert tomllib.loads(after) == expected
    assert after.startswith("# top\n")


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
        (
            '[profiles.a]\nbase_url = "https://a.example.com"',
            "profiles.a.timeout",
            2.5,
            '[profiles.a]\nbase_url = "https://a.example.com"\ntimeout = 2.5\n',
        ),
        ('[profiles.a]\r\nbase_url = "https://a.example.com"\r\n', "profiles.a.read_only", True, None),
    ],
    ids=["empty", "inline", "dotted", "no line end", "crlf"],
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


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("profiles.acme-test.base_url", "http://escrow.example.com", "plain http"),
        ("profiles.acme-test.base_url", None, "profiles.acme-test.base_url: it is missing"),
        ("profiles.acme-test.mode", "prod", 'profiles.acme-test.mode: it should be "test" or "live"'),
        ("profiles.acme-test.timeout", 0, "profiles.acme-test.timeout: it should be seconds above 0"),
        ("default_profile", "nowhere", 'default_profile would be "nowhere", but there is no such profile'),
        ("profiles.acme-test", None, 'default_profile would be "acme-test", but there is no such profile'),
        ("profiles.acme-test.read_only", None, "profiles.acme-test.read_only is not set"),
        ("profiles.new.mode", "test", "profiles.new.base_url: it is missing"),
    ],
)
def test_edit_that_makes_the_file_invalid_changes_nothing(tmp_path: Path, name: str, value: Any, part: str) -> None:
    with pytest.raises(EscrowctlError) as caught:
        edit(tmp_path, BEFORE, (name, value))

    assert int(caught.value.exit_code) == 2
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


# Any layout, any row of changes

NAMES = ("a", "b-2", "c_3")
COMMENT = st.sampled_from(["", "# one", '# [profiles.a] is not a header "', "", "   "])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "base_url": st.sampled_from(["https://a.example.com", "https://b.example.com/x"]),
    "mode": st.sampled_from(["test", "live"]),
    "read_only": st.booleans(),
    "timeout": st.integers(1, 3600),
    "status.released": st.lists(st.text("aä\"\\'#]", min_size=1, max_size=3), max_size=3),
    "reply.id": st.sampled_from(["/id", "/a~1b/0", '/"x']),
    "reply.status": st.just("/status"),
    "webhook.url_field": st.text("aä\"\\'#\n", min_size=1, max_size=3),
    "caps.EUR": st.sampled_from(["5000", "0.01"]),
    "caps.USD": st.integers(1, 10),
}


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A config.toml of up to three profiles, in several layouts, with comments anywhere."""
    lines = [draw(COMMENT), draw(COMMENT)]
    for name in draw(st.permutations(NAMES))[: draw(st.integers(0, 3))]:
        lines += [draw(COMMENT), f"[profiles.{name}] {draw(st.sampled_from(['', '# here']))}"]
        lines.append('base_url = "https://first.example.com"')
        tables: dict[str, list[str]] = {"status": [], "reply": [], "webhook": [], "caps": []}
        dotted = {table for table in tables if draw(st.booleans())}
        for setting in draw(st.lists(st.sampled_from(sorted(VALUES)[1:]), unique=True, max_size=5)):
            value = json.dumps(draw(VALUES[setting]), ensure_ascii=False)
            table, _, leaf = setting.rpartition(".")
            if table and table not in dotted:
                tables[table].append(f"{leaf} = {value}")
            else:
                lines += [draw(COMMENT), f"{setting} = {value} {draw(st.sampled_from(['', '# why']))}"]
        for table, body in ((table, body) for table, body in tables.items() if body):
            lines += [draw(COMMENT), f"[profiles.{name}.{table}]", *body, draw(COMMENT)]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n# end"]))


@pytest.mark.thorough
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=documents(),
    changes=st.lists(
        st.sampled_from(sorted(VALUES)).flatmap(
            lambda setting: st.tuples(st.sampled_from(NAMES), st.just(setting), st.none() | VALUES[setting])
        ),
        max_size=6,
    ),
)
def test_any_edits_are_what_the_standard_library_reads(
    tmp_path: Path, text: str, changes: list[tuple[str, str, Any]]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    expected = tomllib.loads(text)
    editor = ConfigEditor(path, Runtime())

    for profile, setting, value in changes:
        there = expected.get("profiles", {}).get(profile)
        place = ("profiles", profile, *setting.split("."))
        try:
            editor.unset(place) if value is None else editor.set(place, value)
        except EscrowctlError:
            missing = value is None and _get(there, setting) is None
            half_made = there is None and setting != "base_url"
            assert missing or half_made or (value is None and setting == "base_url")
            assert _pruned(tomllib.loads(path.read_text())) == _pruned(expected)
            continue
        _apply(expected.setdefault("profiles", {}).setdefault(profile, {}), setting, value)
        assert _pruned(tomllib.loads(path.read_text())) == _pruned(expected)

    assert _comments(path.read_text()) == _comments(text)


def _comments(text: str) -> list[str]:
    return sorted(line.strip() for line in text.splitlines() if line.strip().startswith("#"))


def _get(table: Any, setting: str) -> Any:
    for part in setting.split("."):
        table = (table or {}).get(part)
    return table


def _apply(table: dict[str, Any], setting: str, value: Any) -> None:
    *parents, leaf = setting.split(".")
    for part in parents:
        table = table.setdefault(part, {})
    if value is None:
        del table[leaf]
    else:
        table[leaf] = value


def _pruned(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: kept for name, item in value.items() if (kept := _pruned(item)) != {}}
