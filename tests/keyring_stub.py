"""A stub of the keyring package: one backend in memory, or one that fails in the way a test names."""

import types
from typing import Any

Entries = dict[tuple[str, str], str]


class KeyringStub:
    """`entries` maps (service, user) to a password; `fails` is raised by every call if given."""

    priority = 5.0

    def __init__(self, entries: Entries | None = None, *, fails: Exception | None = None) -> None:
        self.entries: Entries = dict(entries or {})
        self.calls = 0
        self._fails = fails

    @property
    def module(self) -> Any:
        """What `import keyring` finds."""
        module = types.ModuleType("keyring")
        module.get_keyring = lambda: self  # type: ignore[attr-defined] # the package's function
        return module

    def get_password(self, service: str, user: str) -> str | None:
        self._count()
        return self.entries.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self._count()
        self.entries[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        self._count()
        del self.entries[service, user]

    def _count(self) -> None:
        self.calls += 1
        if self._fails is not None:
            raise self._fails
