"""Signing secrets of webhook endpoints: each in a separate file next to the journal that only its owner can read.

A service shows a secret once, when the endpoint is created. Its interface does not name the field, so the
complete reply is stored. The journal is exported and shown, so it contains no secret.
"""

import contextlib
import itertools
import json
from pathlib import Path

from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.redaction import find_secret
from escrowctl.errors import EscrowctlError
from escrowctl.files import make_private_folder, read_regular, sync_folder, write_durably
from escrowctl.journal.model import Entry

_FOLDER = "signing-secrets"
_MAX_BYTES = 4 * 1024 * 1024


class SigningSecrets:
    """The files for the journal in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        self._stored: dict[str, Path] = {}

    def path_of(self, name: str) -> Path:
        """Return the file for an entry, such as `j12`; see `is_stored`."""
        return self._stored.get(name, self._folder / f"{name}.json")

    def is_stored(self, name: str) -> bool:
        """Whether this process has stored a reply for the entry."""
        return name in self._stored

    def store(self, entry: Entry, reply: JsonValue, *, resource_id: str | None) -> None:
        """Write `{"service", "id", "secret", "reply"}`, mode 0600, before the secret is shown.

        `secret` is null if no field of the reply has a usual name. A write error is ignored: the endpoint
        exists, and the secret is in the reply that is about to be shown.
        """
        document: JsonValue = {
            "service": entry.intent.service,
            "id": resource_id,
            "secret": find_secret(reply),
            "reply": reply,
        }
        with contextlib.suppress(OSError, EscrowctlError):
            make_private_folder(self._folder)
            self._stored[entry.name] = self._write_new(entry.name, encode(document).encode())

    def list_secrets(self, service: str) -> list[str]:
        """Return the secrets of a service's endpoints, the newest last, as far as the files can be read."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: (len(path.name), path.name))
        return [secret for path in paths if (secret := _read_secret(path, service))]

    def _write_new(self, name: str, content: bytes) -> Path:
        """Write to a new file name: a restored journal may use a number again, and a secret is shown only once."""
        path, copies = self._folder / f"{name}.json", itertools.count(2)
        while True:
            try:
                write_durably(path, content)
            except FileExistsError:
                path = self._folder / f"{name}-{next(copies)}.json"
            else:
                sync_folder(self._folder)
                return path


def _read_secret(path: Path, service: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(read_regular(path, limit=_MAX_BYTES)[0])
        if document["service"] == service and isinstance(document["secret"], str):
            return document["secret"]
    return None
