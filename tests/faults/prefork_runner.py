"""Starts many commands at the same time: imports escrowctl once, then forks for each and runs `main` in the child.

Each line of stdin is a round: a JSON list of {"argv", "environ", "started"}. A child makes the file
`started` just before `main`, and writes into it when that ended. Nothing of escrowctl is open before
the fork: locks, SQLite and sockets are each child's own, as in processes that were started one by
one. The answer is one line of JSON: [{"code", "out", "err"}], in the order of the round. An argument
names a function of `faults.variants`.
"""

import importlib
import json
import os
import pkgutil
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

sys.path.insert(0, str(Path(__file__).parents[1]))

PRELOADED = ("client", "commands", "commands.tx", "commands.journal", "journal", "output", "config", "writes")


def preload(variant: str | None) -> None:
    """Import what a write needs, and break it where a variant is named."""
    for name in ("escrowctl.main", "escrowctl.app", "httpx", "sqlite3"):
        importlib.import_module(name)
    for name in PRELOADED:
        package = f"escrowctl.{name}"
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    if variant is not None:
        getattr(importlib.import_module("faults.variants"), variant)()


def run_in_child(job: dict[str, Any], out: BinaryIO, err: BinaryIO) -> None:
    """Become the process of one command; never returns."""
    code = 99
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.environ.clear()
        os.environ.update(job["environ"])
        from escrowctl.main import main

        Path(job["started"]).touch()
        code = main(job["argv"])
        Path(job["started"]).write_text(str(time.monotonic()))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - any failure is reported to the round
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def run_round(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fork for each job, and return how each ended."""
    with ExitStack() as stack:
        files = [[stack.enter_context(tempfile.TemporaryFile()) for _ in ("out", "err")] for _ in jobs]
        children = []
        for job, (out, err) in zip(jobs, files, strict=True):
            child = os.fork()
            if not child:
                run_in_child(job, out, err)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        return [
            {"code": code, "out": _text(out), "err": _text(err)} for code, (out, err) in zip(codes, files, strict=True)
        ]


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    preload(sys.argv[1] if len(sys.argv) > 1 else None)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run_round(json.loads(line))) + "\n")
        sys.stdout.flush()
