"""Journal files of earlier formats, as the versions of that time wrote them."""

import hashlib
import json
import sqlite3
from pathlib import Path

_BASE_URL = "http://127.0.0.1:4999"
_GENESIS = "0" * 64


def write_journal(path: Path, version: int, *, base_url: str = _BASE_URL) -> None:
    """Write a journal of format 1 or 3 whose entries are at `base_url`, its chain valid."""
    path.parent.mkdir(parents=True, mode=0o700)
    text = Path(__file__).with_name(f"journal-format-{version}.sql").read_text()
    database = sqlite3.connect(path)
    with database:
        database.executescript(text.replace(_BASE_URL, base_url))
        previous = _GENESIS
        for record in database.execute("SELECT sequence, entry, kind, at, facts FROM records ORDER BY 1").fetchall():
            previous = hashlib.sha256(json.dumps([previous, *record]).encode()).hexdigest()
            database.execute("UPDATE records SET digest = ? WHERE sequence = ?", (previous, record[0]))
    database.close()
    path.chmod(0o600)
