"""Schemathesis against a sandbox served on loopback: it reads the document and looks for deviations.

It runs as a command in a separate process, to keep its warnings and hooks out of this suite.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

from escrowctl.sandbox.service import Sandbox
from sandbox.serving import serving_sandbox

HOOKS = Path(__file__).with_name("examiner_hooks.py")
TIME_LIMIT = 1800

CONFIGURATION = f"""
hooks = {json.dumps(str(HOOKS))}

# INTERFACE.md section 7: PUT /transactions/:id was seen with 400, and nothing that it would accept is shown.
[[operations]]
include-operation-id = "update_transaction"
checks.positive_data_acceptance.expected-statuses = [400, 404]
"""


@dataclass(frozen=True)
class Examination:
    """The result of a run: exit code, findings as (kind, operation), number of requests, output."""

    code: int
    findings: frozenset[tuple[str, str]]
    requests: int
    output: str


def examine(sandbox: Sandbox, folder: Path, *words: str, seed: int) -> Examination:
    """Run Schemathesis with all its checks; `words` go to its command line. It creates the folder."""
    folder.mkdir()
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    with serving_sandbox(sandbox) as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--checks", "all"),
                *("-H", f"Authorization: Bearer {sandbox.key}"),
                *("--seed", f"{seed}", "--generation-database", "none", "--continue-on-failure"),
                *("--report", "json", "--report-json-path", "report.json", "--no-color"),
                *words,
            ],
            cwd=folder,
            env={**os.environ, **_existing_records(url, key=sandbox.key)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    report = json.loads((folder / "report.json").read_text())
    found = {(failure["type"], place) for failure in report["failures"] for place in failure["operations"]}
    assert report["errors"] == [], done.stdout
    return Examination(done.returncode, frozenset(found), report["test_cases"]["generated"], done.stdout)


def _existing_records(url: str, *, key: str) -> dict[str, str]:
    with httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {key}"}, trust_env=False) as client:
        transaction = client.post("/transactions", json={"amount": 100, "currency": "USD"})
        webhook = client.post("/webhooks", json={"url": "http://127.0.0.1:3000/hooks"})
    # Only the ids are read: a sandbox with a fault may lack other fields.
    return {"EXAMINER_TRANSACTION": transaction.json()["id"], "EXAMINER_WEBHOOK": webhook.json()["id"]}
