"""The signing secrets of webhook endpoints, each in a file next to the journal. Only the user can read the files.

A service shows a secret once, when the endpoint is created. The service's interface does not say
which field has the secret, so the complete reply is stored. The journal may be exported, so it has no secrets.
"""

import contextlib
import itertools
import json
from pathlib import Path

from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.redaction import find_signing_secret
from escrowctl.errors import EscrowctlError
from escrowctl.files import make_private_folder, read_regular, sync_folder, write_durably
from escrowctl.journal.model import Entry

_FOLDER_NAME = "signing-secrets"
_MAX_BYTES = 4 * 1024 * 1024


class SigningSecrets:
    """The files with the signing secrets, for the journal in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER_NAME
        self._stored: dict[str, Path] = {}

    def path_of(self, name: str) -> Path:
        """Return the path of an entry's file. `name` is the entry's name, such as `j12`. The file may not exist."""
        return self._stored.get(name, self._folder / f"{name}.json")

    def is_stored(self, name: str) -> bool:
        """Whether this process has stored a file for the entry with this name."""
        return name in self._stored

    def store(self, entry: Entry, reply: JsonValue, *, resource_id: str | None) -> None:
        """Write a file with the members `service`, `id`, `secret` and `reply`, before the secret is shown.

        `secret` is null if it is not found in the reply. An error while writing is ignored: the endpoint
        exists, and the secret is in the reply that is about to be shown.
        """
        document: JsonValue = {
            "service": entry.intent.service,
            "id": resource_id,
            "secret": find_signing_secret(reply),
            "reply": reply,
        }
        with contextlib.suppress(OSError, EscrowctlError):
            make_private_folder(self._folder)
            self._stored[entry.name] = self._write_new(entry.name, encode(document).encode())

    def list_secrets(self, service: str) -> list[str]:
        """Return the secrets of a service's endpoints, the newest last. Files that cannot be read are left out."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: (len(path.name), path.name))
        secrets: list[str] = []
        for path in paths:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                document = json.loads(read_regular(path, limit=_MAX_BYTES)[0])
                if document["service"] == service and isinstance(document["secret"], str):
                    secrets.append(document["secret"])
        return list(filter(None, secrets))

    def _write_new(self, name: str, content: bytes) -> Path:
        """Write a new file, and return its path. An old file stays: a restored journal may reuse a number."""
        path, copies = self._folder / f"{name}.json", itertools.count(2)
        while True:
            try:
                write_durably(path, content)
            except FileExistsError:
                path = self._folder / f"{name}-{next(copies)}.json"
            else:
                sync_folder(self._folder)
                return path
