"""Signing secrets of webhook endpoints: each in a file of its own beside the journal, for its owner alone.

A service shows a secret once, when the endpoint is made; who would verify its events later needs it
still. The journal is exported and shown, so it holds none.
"""

import contextlib
import json
from pathlib import Path

from escrowctl.config.folders import make_private_folder
from escrowctl.config.replacing import replace_file
from escrowctl.errors import EscrowctlError
from escrowctl.journal.entries import Entry

_FOLDER = "signing-secrets"


def path_of(folder: Path, entry: Entry) -> Path:
    """Return the file for an entry of the journal in `folder`."""
    return folder / _FOLDER / f"{entry.name}.json"


def keep(folder: Path, entry: Entry, secret: str, *, resource_id: str | None) -> None:
    """Write `{"service", "id", "secret"}`, mode 0600, before anybody is shown the secret.

    A file that cannot be written is no reason to fail: the endpoint exists, and the secret is in the
    reply that is about to be shown.
    """
    path = path_of(folder, entry)
    document = {"service": entry.intent.service, "id": resource_id, "secret": secret}
    with contextlib.suppress(OSError, EscrowctlError):
        make_private_folder(path.parent)
        # No lock: the file is this entry's own, and one process writes it.
        replace_file(path, json.dumps(document), private=True)
