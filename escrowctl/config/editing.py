"""Change config.toml: one setting at a time. Comments and order stay, and no invalid file is written.

tomlkit edits the text. Then the standard library's parser reads the new text, which must give the old
tables with that one change. So a layout that tomlkit gets wrong is refused, not written.
"""

import contextlib
import copy
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from escrowctl.config.file import locked, parse_toml, read_text, validate_config
from escrowctl.config.origin import parse_base_url, refuse_prefix
from escrowctl.config.profiles import Value
from escrowctl.config.service import PENDING
from escrowctl.config.toml import load_toml
from escrowctl.errors import EscrowctlError, bad_config, command
from escrowctl.files import drafted, make_private_folder, replace_durably
from escrowctl.runtime import Runtime

_PROFILES, _BASE_URL = "profiles", "base_url"
_ADDED_TO = ("status", "pending")
Change = tuple[Sequence[str], Value | None]
"""The path of a setting, and its new value; None removes it."""


class ConfigEditor:
    """Changes one config.toml. Writers take turns, so no change is lost.

    Every method raises EscrowctlError: `ErrorCode.BAD_CONFIG` if the file would be invalid, `BUSY` if another
    writer does not end, `STATE_UNUSABLE` if it cannot be written. The file is then unchanged.
    """

    def __init__(self, path: Path, runtime: Runtime) -> None:
        self._link = path
        # A link stays a link, as dotfile managers expect; its target is replaced.
        self._path = Path(os.path.realpath(path))
        self._runtime = runtime

    def set(self, path: Sequence[str], value: Value) -> Value:
        """Set one setting, with the tables that it needs, and return its value in the file.

        The base URL of a profile with a key file cannot move to another origin: the key was given for
        the current one. Values of `status.pending` are added to the list in the file, or to the built-in one.
        """
        with locked(self.make_folder(), self._runtime):
            tables = self.read()
            if tuple(path[2:]) == _ADDED_TO and isinstance(value, list):
                listed = find(tables, path)
                value = list(dict.fromkeys([*(PENDING if listed is None else listed), *value]))
            if path[-1] == _BASE_URL:
                _refuse_to_move_key(find(tables, path[:-1]) or {}, path, str(value))
            replace_durably(self._path, self._plan([(path, value)]))
        return value

    def unset(self, path: Sequence[str]) -> None:
        """Remove one setting, or a complete profile. Also raises `ErrorCode.BAD_CONFIG` if it is not set."""
        with locked(self.make_folder(), self._runtime):
            if find(self.read(), path) is None:
                raise bad_config(f"{self._link}: {'.'.join(path)} is not set.")
            replace_durably(self._path, self._plan([(path, None)]))

    def read(self) -> dict[str, Any]:
        """Return the tables of the current file."""
        return parse_toml(self._link, read_text(self._path) or "")

    def check(self, changes: Sequence[Change]) -> None:
        """Refuse the changes that `drafted` would refuse, as far as this is known without writing."""
        if self._path.parent.exists() or not self._may_create:
            with locked(self._path.parent, self._runtime):
                pass
        self._plan(changes)

    def make_folder(self) -> Path:
        """Return the folder to lock. Creates it if it is missing, unless a link leads there from another folder."""
        folder = self._path.parent
        if not folder.exists() and self._may_create:
            make_private_folder(folder)
        return folder

    @contextlib.contextmanager
    def drafted(self, changes: Sequence[Change]) -> Iterator[Callable[[], None]]:
        """Write the changed file; yield the function that puts it in place. Lock the folder from `make_folder`."""
        with drafted(self._path, self._plan(changes)) as put:
            yield put

    @property
    def _may_create(self) -> bool:
        return self._path.is_relative_to(self._link.parent.resolve())

    def _plan(self, changes: Sequence[Change]) -> str:
        """Return the new text of the file."""
        text = read_text(self._path) or ""
        tables = parse_toml(self._link, text)
        for path, value in changes:
            text = _edit(text, path, value)
            changed = table = copy.deepcopy(tables)
            for part in path[:-1]:
                table = table.setdefault(part, {})
            if value is None:
                del table[path[-1]]
            else:
                table[path[-1]] = value
            if not _reads_as(text, changed):
                raise bad_config(
                    f"{self._link}: the layout of the file does not allow escrowctl to change {'.'.join(path)}: "
                    "change it in an editor. The file is unchanged."
                )
            tables = load_toml(text)
        config = validate_config(self._link, tables)
        if config.default_profile is not None and config.default_profile not in config.profiles:
            known = ", ".join(sorted(config.profiles)) or "none"
            raise bad_config(
                f'{self._link}: default_profile would be "{config.default_profile}", but there is no such profile '
                f"(the profiles are: {known})."
            )
        for name in frozenset(path[1] for path, _ in changes if len(path) > 1) & config.profiles.keys():
            profile, source = config.profiles[name], f"profiles.{name}.base_url"
            refuse_prefix(parse_base_url(profile.base_url, source=source), profile.api_prefix, source=source)
        return text if text.endswith("\n") or not text else f"{text}\n"


def find(tables: dict[str, Any], path: Sequence[str]) -> Any:
    """Return the value at a path of tables, or None."""
    value: Any = tables
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _refuse_to_move_key(profile: dict[str, Any], path: Sequence[str], value: str) -> None:
    name = ".".join(path[:-1])
    file, before = profile.get("api_key_file"), profile.get(_BASE_URL)
    if file is None or before is None:
        return
    new = str(parse_base_url(value, source=".".join(path)))
    current = _origin_or_text(before)
    if new != current:
        raise bad_config(
            f"the API key in {file} is for {current}: escrowctl does not send it to {new}.",
            hint=(
                command(f"config unset {name}.api_key_file", "first", bare=True),
                command(f"config set {name}.{_BASE_URL} {value}", "then", bare=True),
                command(
                    f"config set {name}.api_key_file FILE", "if a file contains the key for the new URL", bare=True
                ),
            ),
        )


def _origin_or_text(base_url: object) -> str:
    try:
        return str(parse_base_url(str(base_url), source=_BASE_URL))
    except EscrowctlError:
        # The new value may be its correction.
        return str(base_url)


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        found = load_toml(text)
    except ValueError:
        return False
    return bool(_without_empty(found) == _without_empty(wanted))


def _without_empty(tables: Any) -> Any:
    """Return tables without the empty ones: they mean nothing."""
    if not isinstance(tables, dict):
        return tables
    kept = {name: _without_empty(value) for name, value in tables.items()}
    return {name: value for name, value in kept.items() if value != {}}


def _edit(text: str, path: Sequence[str], value: Value | None) -> str:
    """Return the text with the value at this path, or without it if it is None; unchanged if tomlkit cannot."""
    import tomlkit  # noqa: PLC0415 - for those who write
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        table: Any = document
        added: Any = value
        for depth, part in enumerate(path[:-1], start=1):
            if part not in table and value is not None:
                for missing in reversed(path[depth:]):
                    added = {missing: added}
                table[part] = added
                return tomlkit.dumps(document)
            table = table[part]
        if value is None:
            del table[path[-1]]
        else:
            table[path[-1]] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError, AttributeError):
        # tomlkit fails in various ways on layouts that it cannot change.
        return text
