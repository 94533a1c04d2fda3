"""Signing secrets of webhook endpoints: each in a separate file next to the journal, for its owner alone.

A service shows a secret once, when the endpoint is created, and under a name that its interface does not
show: the complete reply is stored. The journal is exported and shown, so it contains no secret.
"""

import contextlib
from pathlib import Path

from escrowctl.config.file import replace_file
from escrowctl.config.folders import make_private_folder
from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.redaction import find_secret
from escrowctl.errors import EscrowctlError
from escrowctl.journal.model import Entry

_FOLDER = "signing-secrets"


class SigningSecrets:
    """The files for the journal in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER

    def path_of(self, name: str) -> Path:
        """Return the file for an entry, such as `j12`; it need not exist."""
        return self._folder / f"{name}.json"

    def store(self, entry: Entry, reply: JsonValue, *, resource_id: str | None) -> None:
        """Write `{"service", "id", "secret", "reply"}`, mode 0600, before anybody is shown the secret.

        `secret` is null where it has no usual name. A file that cannot be written is no reason to fail:
        the endpoint exists, and the secret is in the reply that is about to be shown.
        """
        path = self.path_of(entry.name)
        document: JsonValue = {
            "service": entry.intent.service,
            "id": resource_id,
            "secret": find_secret(reply),
            "reply": reply,
        }
        with contextlib.suppress(OSError, EscrowctlError):
            make_private_folder(path.parent)
            # No lock: the file is this entry's own, and one process writes it.
            replace_file(path, encode(document), private=True)
