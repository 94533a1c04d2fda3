"""The sandbox is an honest judge of the client: it loads no part of it, and few other modules."""

import os
import subprocess
import sys
from pathlib import Path

LIST_MODULES = "import sys, escrowctl.sandbox.service; print(*sys.modules, sep='\\n')"


def loaded() -> set[str]:
    path = os.pathsep.join(filter(None, [*sys.path, str(Path.cwd())]))
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_sandbox_loads_operations_errors_files_and_itself() -> None:
    modules = loaded()

    assert {name for name in modules if name.startswith("escrowctl.") and ".sandbox" not in name} == {
        *("escrowctl.contract", "escrowctl.contract.operations"),
        *("escrowctl.errors", "escrowctl.files", "escrowctl.post_once", "escrowctl.sqlite"),
    }
    assert modules & {"httpx", "httpcore", "typer", "rich", "waitress"} == set()
    assert [name for name in modules if name.endswith(".openapi")] == []
