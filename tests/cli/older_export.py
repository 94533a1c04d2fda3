"""What `journal export` of an earlier version printed: records of journal formats 1 and 13."""

import hashlib
import json
from pathlib import Path

_PORT = ":4999"
_GENESIS = "0" * 64


def write_older_export(path: Path, *, base_url: str) -> Path:
    """Write the export with its entries at `base_url`, its chain valid, and return the path."""
    text = Path(__file__).with_name("older-export.jsonl").read_text()
    first, *records, last = text.replace(_PORT, f":{base_url.rpartition(':')[2]}").splitlines()
    head, lines = _GENESIS, [first]
    for line in map(json.loads, records):
        facts = json.dumps(line["facts"], sort_keys=True, separators=(",", ":"))
        covered = json.dumps([head, line["sequence"], line["entry"], line["kind"], line["at"], facts])
        head = hashlib.sha256(covered.encode()).hexdigest()
        lines.append(json.dumps(line | {"digest": head}))
    end = json.loads(last)
    lines.append(json.dumps({"head": end["head"] | {"digest": head}}))
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
