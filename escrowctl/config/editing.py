"""Change settings in config.toml. Comments and order stay, and no invalid file is written.

tomlkit edits the text. The standard library's parser reads the new text. If that does not give the old settings
with the changes, tomlkit could not edit the layout of the file, and nothing is written.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from escrowctl.config.file import locked, parse_toml, read_text, validate_config
from escrowctl.config.profiles import ConfigFile, SettingValue
from escrowctl.config.service import PENDING_STATUSES
from escrowctl.errors import EscrowctlError, bad_config, command
from escrowctl.files import replace_durably
from escrowctl.runtime import Runtime

Change = tuple[Sequence[str], SettingValue | None]
"""The path of a setting, and its new value; a value of None removes the setting."""


class ConfigEditor:
    """Changes one config.toml. Only one process at a time changes the file, so that no change is lost.

    Every method may raise EscrowctlError: `ErrorCode.BAD_CONFIG` if the file would be invalid, `BUSY` if another
    process holds the lock of `folder`, `STATE_UNUSABLE` if the file cannot be written. The file is then unchanged.
    """

    def __init__(self, path: Path, runtime: Runtime) -> None:
        self._file = path
        # A link stays a link, as dotfile managers expect; its target is replaced.
        self._target = Path(os.path.realpath(path))
        self.folder = self._target.parent
        self._runtime = runtime

    def set(self, path: Sequence[str], value: SettingValue) -> SettingValue:
        """Set one setting and return its new value. Adds the tables that are missing.

        A list for `status.pending` is added to the list in the file, or to the built-in list if the file has none.
        """
        with locked(self.folder, self._runtime):
            if tuple(path[2:]) == ("status", "pending") and isinstance(value, list):
                listed = find_value(self.read(), path)
                known = PENDING_STATUSES if listed is None else listed
                value = [*known, *(status for status in value if status not in known)]
            self.write_changes([(path, value)])
        return value

    def unset(self, path: Sequence[str]) -> None:
        """Remove the setting or profile at `path`. Raises `ErrorCode.BAD_CONFIG` if the file does not have it."""
        with locked(self.folder, self._runtime):
            if find_value(self.read(), path) is None:
                raise bad_config(f"{self._file}: {'.'.join(path)} is not set.")
            self.write_changes([(path, None)])

    def read(self) -> dict[str, Any]:
        """Return the file's current tables; empty if there is no file."""
        return parse_toml(self._file, read_text(self._target) or "")

    def write_changes(self, changes: Sequence[Change]) -> None:
        """Write all changes; none if the new file would be invalid. The caller must hold the lock of `folder`."""
        replace_durably(self._target, self.render_changes(changes))

    def render_changes(self, changes: Sequence[Change]) -> str:
        """Return the text that the file would have after the changes. Checks that it is valid, and writes nothing.

        A base URL with another origin is refused for a profile with `api_key_file`: the key is for the old origin.
        """
        import tomlkit  # noqa: PLC0415 - only writers need it
        from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

        before = text = read_text(self._target) or ""
        wanted = parse_toml(self._file, before)
        try:
            old = validate_config(self._file, wanted)
        except EscrowctlError:
            # The file is not valid now, but the changes may correct it.
            old = None
        # TypeError: the path leads through a value that is no table. The validation below reports it.
        with contextlib.suppress(TypeError):
            for path, value in changes:
                _change_value(wanted, path, value)
        config = validate_config(self._file, wanted)
        try:
            document = tomlkit.parse(before)
            for path, value in changes:
                _change_value(document, path, value)
            text = tomlkit.dumps(document)
            is_right = validate_config(self._file, parse_toml(self._file, text)) == config
        except (TOMLKitError, EscrowctlError, ValueError, TypeError, AttributeError, RecursionError):
            # tomlkit fails in various ways on layouts that it cannot change.
            is_right = False
        if not is_right:
            names = ", ".join(".".join(path) for path, _ in changes)
            raise bad_config(
                f"{self._file}: the layout of the file does not allow escrowctl to change {names}: "
                "change it in an editor. The file is unchanged."
            )
        if config.default_profile is not None and config.default_profile not in config.profiles:
            known = ", ".join(sorted(config.profiles)) or "none"
            raise bad_config(
                f'{self._file}: default_profile would be "{config.default_profile}", but there is no such profile '
                f"(the profiles are: {known})."
            )
        if old is not None:
            _refuse_key_redirect(old, config)
        return text if text.endswith("\n") or not text else f"{text}\n"


def find_value(tables: dict[str, Any], path: Sequence[str]) -> Any:
    """Return the value at a path in nested tables; None if the path leads to no value."""
    value: Any = tables
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _change_value(table: Any, path: Sequence[str], value: object) -> None:
    """Set the value at a path in tables or a tomlkit document; add missing tables. None removes the value."""
    name, *rest = path
    if rest and name in table:
        _change_value(table[name], rest, value)
    elif value is None:
        del table[name]
    else:
        for part in reversed(rest):
            value = {part: value}
        table[name] = value


def _refuse_key_redirect(old: ConfigFile, new: ConfigFile) -> None:
    for name in old.profiles.keys() & new.profiles.keys():
        before, after = old.profiles[name], new.profiles[name]
        old_origin, new_origin = str(before.origin), str(after.origin)
        if before.api_key_file and after.api_key_file and old_origin != new_origin:
            raise bad_config(
                f"the API key in {after.api_key_file} is for {old_origin}: "
                f"escrowctl does not send the key to {new_origin}.",
                hint=(
                    command(f"config unset profiles.{name}.api_key_file", "first", bare=True),
                    command(f"config set profiles.{name}.base_url {after.base_url}", "then", bare=True),
                ),
            )
