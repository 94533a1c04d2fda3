"""Signing secrets of webhook endpoints: each in a file of its own next to the journal, for its owner alone.

A service shows a secret once, when the endpoint is created, and under a name that INTERFACE.md does not
show: the whole reply is stored. The journal is exported and shown, so it holds no secret.
"""

import contextlib
from pathlib import Path

from escrowctl.config.folders import make_private_folder
from escrowctl.config.replacing import replace_file
from escrowctl.contract.body import encode
from escrowctl.contract.number import JsonValue
from escrowctl.contract.redaction import find_secret
from escrowctl.errors import EscrowctlError
from escrowctl.journal.entries import Entry

_FOLDER = "signing-secrets"


def path_of(folder: Path, name: str) -> Path:
    """Return the file for an entry, such as `j12`, of the journal in `folder`."""
    return folder / _FOLDER / f"{name}.json"


def keep(folder: Path, entry: Entry, reply: JsonValue, *, resource_id: str | None) -> None:
    """Write `{"service", "id", "secret", "reply"}`, mode 0600, before anybody is shown the secret.

    `secret` is null where it has no usual name. A file that cannot be written is no reason to fail: the
    endpoint exists, and the secret is in the reply that is about to be shown.
    """
    path = path_of(folder, entry.name)
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
