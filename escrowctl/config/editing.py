"""Changing config.toml: one setting at a time, comments and order kept, never to something invalid.

tomlkit edits the text. That nothing but the one setting changed is not left to it: the new text is
read by the standard library's parser and compared with what the old one should have become.
"""

import contextlib
import copy
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from escrowctl.config.file import parse_toml, read_text, validate_config
from escrowctl.config.folders import make_private_folder
from escrowctl.config.names import Value
from escrowctl.config.origin import parse_base_url, refuse_prefix
from escrowctl.config.profiles import ConfigFile
from escrowctl.config.replacing import drafted, locked
from escrowctl.config.service import PENDING
from escrowctl.errors import EscrowctlError, bad_config
from escrowctl.surroundings import Surroundings

_PROFILES, _BASE_URL = "profiles", "base_url"
_ADDED_TO = ("status", "pending")
_Change = tuple[Sequence[str], Value | None]


class ConfigEditor:
    """One config.toml, to be changed. Whoever comes second sees what the first has written.

    Every method raises EscrowctlError: 2 where the file would be invalid, 7 where another writer
    does not end, 17 where it cannot be written. The file is then as it was.
    """

    def __init__(self, path: Path, around: Surroundings) -> None:
        self._link = path
        # A link, as dotfile collections make them, stays one; its target is replaced.
        self._path = Path(os.path.realpath(path))
        self._around = around

    def set(self, path: Sequence[str], value: Value) -> Value:
        """Set one setting, tables that it needs are made, and return its value in the file.

        A base URL is not moved to another origin under a profile that names a key file (exit 2): the
        key in it was given for where the profile is now. `status.pending` is added to: its built-in
        statuses stay.
        """

        written = value

        def change(tables: dict[str, Any]) -> list[_Change]:
            nonlocal written
            if tuple(path[2:]) == _ADDED_TO and isinstance(value, list):
                listed = find(tables, path)
                written = list(dict.fromkeys([*(PENDING if listed is None else listed), *value]))
            if path[-1] == _BASE_URL:
                _refuse_to_take_key_along(find(tables, path[:-1]) or {}, path, str(value))
            return [(path, written)]

        self.apply(change)
        return written

    def unset(self, path: Sequence[str]) -> None:
        """Take one setting out, or a whole profile; raises EscrowctlError (exit 2) where it is not there."""

        def change(tables: dict[str, Any]) -> list[_Change]:
            if find(tables, path) is None:
                raise bad_config(f"{self._link}: {'.'.join(path)} is not set there.")
            return [(path, None)]

        self.apply(change)

    def apply(self, decide: Callable[[dict[str, Any]], list[_Change]]) -> None:
        """Make the changes that `decide` returns for the file's tables as they are under the lock."""
        with locked(self.make_folder(), self._around), self.drafted(decide) as put:
            put()

    def rehearse(self, decide: Callable[[dict[str, Any]], list[_Change]]) -> None:
        """Raise what `apply` would for the file as it is now, as far as that can be told without writing."""
        folder = self._path.parent
        if not folder.exists() and self._is_makeable:
            self._plan(decide)
            return
        with locked(folder, self._around):
            self._plan(decide)

    def make_folder(self) -> Path:
        """Return the folder to lock, which is made where it is missing and the file is no link out of it."""
        folder = self._path.parent
        if not folder.exists() and self._is_makeable:
            make_private_folder(folder)
        return folder

    @contextlib.contextmanager
    def drafted(self, decide: Callable[[dict[str, Any]], list[_Change]]) -> Iterator[Callable[[], None]]:
        """Yield what makes the changes, all of it checked and on the disk; call while `make_folder` is locked."""
        with drafted(self._path, self._plan(decide)) as put:
            yield put

    @property
    def _is_makeable(self) -> bool:
        return self._path.is_relative_to(self._link.parent.resolve())

    def _plan(self, decide: Callable[[dict[str, Any]], list[_Change]]) -> str:
        """Return the text that the file would have."""
        text = read_text(self._path) or ""
        tables = parse_toml(self._link, text)
        changes = decide(copy.deepcopy(tables))
        for path, value in changes:
            text, tables = self._changed(text, tables, path, value)
        self._check(validate_config(self._link, tables), frozenset(path[1] for path, _ in changes if len(path) > 1))
        return text if text.endswith("\n") or not text else f"{text}\n"

    def _changed(
        self, text: str, tables: dict[str, Any], path: Sequence[str], value: Value | None
    ) -> tuple[str, dict[str, Any]]:
        wanted = copy.deepcopy(tables)
        if value is None:
            _take(wanted, path)
        else:
            _put(wanted, path, value)
        for candidate in (_without_profile, _without) if value is None else (_with,):
            changed = candidate(text, path, value)
            if changed is not None and _reads_as(changed, wanted):
                return changed, tomllib.loads(changed)
        raise bad_config(
            f"{self._link}: {'.'.join(path)} cannot be changed here: the file is laid out in a way that only its "
            "author can change. It is as it was."
        )

    def _check(self, config: ConfigFile, touched: frozenset[str]) -> None:
        """Check what the models cannot: that the default is there, and that touched base URLs can be used."""
        if config.default_profile is not None and config.default_profile not in config.profiles:
            known = ", ".join(sorted(config.profiles)) or "none"
            raise bad_config(
                f'{self._link}: default_profile would be "{config.default_profile}", and there is no such profile '
                f"(profiles there: {known})."
            )
        for name in touched & config.profiles.keys():
            profile, source = config.profiles[name], f"profiles.{name}.base_url"
            refuse_prefix(parse_base_url(profile.base_url, source=source), profile.api_prefix, source=source)


def find(tables: dict[str, Any], path: Sequence[str]) -> Any:
    """Return what stands at a path of tables, or None."""
    value: Any = tables
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _refuse_to_take_key_along(profile: dict[str, Any], path: Sequence[str], value: str) -> None:
    name = ".".join(path[:-1])
    file, before = profile.get("api_key_file"), profile.get(_BASE_URL)
    if file is None or before is None:
        return
    origin = str(parse_base_url(value, source=".".join(path)))
    there = _origin_or_text(before)
    if origin != there:
        raise bad_config(
            f"the key in {file} was given for {there}, and would be used at {origin}: a key goes to no other origin.",
            hint=(
                f"first:  escrowctl config unset {name}.api_key_file",
                f"then:   escrowctl config set {name}.{_BASE_URL} {value}",
                f"and, where a file holds the key for it:  escrowctl config set {name}.api_key_file FILE",
            ),
        )


def _origin_or_text(base_url: object) -> str:
    try:
        return str(parse_base_url(str(base_url), source=_BASE_URL))
    except EscrowctlError:
        # It is being mended.
        return str(base_url)


# The change as data


def _put(tables: dict[str, Any], path: Sequence[str], value: Value) -> None:
    for part in path[:-1]:
        tables = tables.setdefault(part, {})
    tables[path[-1]] = value


def _take(tables: dict[str, Any], path: Sequence[str]) -> None:
    del find(tables, path[:-1])[path[-1]]


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return bool(_without_empty(found) == _without_empty(wanted))


def _without_empty(tables: Any) -> Any:
    """Leave out empty tables: they say nothing."""
    if not isinstance(tables, dict):
        return tables
    kept = {name: _without_empty(value) for name, value in tables.items()}
    return {name: value for name, value in kept.items() if value != {}}


# The change as text


def _with(text: str, path: Sequence[str], value: Value | None) -> str | None:
    import tomlkit  # noqa: PLC0415 - for those who write
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        _insert(document, path, value)
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError, AttributeError):
        # Layouts that it cannot extend end in various ways; the caller says so once.
        return None


def _insert(document: Any, path: Sequence[str], value: Value | None) -> None:
    """Put a value in: into the table that is there, else as a dotted key, a new profile as a table of its own."""
    import tomlkit  # noqa: PLC0415 - as above
    from tomlkit.items import InlineTable  # noqa: PLC0415

    table = document
    for depth, part in enumerate(path[:-1]):
        if part in table:
            table = table[part]
        elif isinstance(table, InlineTable):
            table[part] = tomlkit.inline_table()
            table = table[part]
        elif depth < len((_PROFILES, "name")):
            table[part] = tomlkit.table(is_super_table=part == _PROFILES)
            table = table[part]
        else:
            return _append(table, tomlkit.key(list(path[depth:])), value)
    if path[-1] in table or isinstance(table, InlineTable) or len(path) == 1:
        table[path[-1]] = value
        return None
    return _append(table, path[-1], value)


def _append(table: Any, key: Any, value: Value | None) -> None:
    """Append after the table's last value, before the comments and blank lines that belong to what follows."""
    body = getattr(getattr(table, "value", None), "body", None)
    tail = []
    while body and body[-1][0] is None:
        tail.append(body.pop())
    table.append(key, value)
    if body is not None:
        body.extend(reversed(tail))


def _without(text: str, path: Sequence[str], _value: Value | None) -> str | None:
    import tomlkit  # noqa: PLC0415 - as above
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for part in path[:-1]:
            table = table[part]
        del table[path[-1]]
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError, AttributeError):
        return None


def _without_profile(text: str, path: Sequence[str], _value: Value | None) -> str | None:
    """Take out the lines of a profile's tables, and leave the comments above the table that follows."""
    if len(path) != len((_PROFILES, "name")):
        return None
    name = re.escape(path[1])
    mine = re.compile(rf"""\s*\[\s*["']?profiles["']?\s*\.\s*["']?{name}["']?\s*[.\]]""")
    kept: list[str] = []
    dropped: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            if inside:
                kept += _belonging_to_next(dropped)
            inside, dropped = mine.match(line) is not None, []
        (dropped if inside else kept).append(line)
    return "".join(kept + (_belonging_to_next(dropped) if inside else []))


def _belonging_to_next(lines: list[str]) -> list[str]:
    """Return the comments at the end, from the last blank line before them on."""
    count = len(lines)
    while count and (not lines[count - 1].strip() or lines[count - 1].lstrip().startswith("#")):
        count -= 1
    tail = lines[count:]
    while tail and tail[0].lstrip().startswith("#"):
        # Right under the last value: a remark about that.
        tail.pop(0)
    return tail[1:] if tail else []
