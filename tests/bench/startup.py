"""Measure how fast escrowctl starts, as ratios taken in one run. pytest does not run this.

Seconds say more about the machine than about the program, so each command is compared with another one in the same
run: the bare interpreter, a minimal script that sends the same GET with the same libraries (minimal_get.py), or
another command of escrowctl. The runs alternate, each is compared with the other command's run of the same round, and
the median of these ratios counts. The environment is empty but for what is needed. The bounds are for elapsed time,
which counts what a create waits for the disk; the ratio of processor time next to it varies less where others use the
machine. HTTPie, where it is installed, asks the same server for the same URL; that ratio has no bound.

escrowctl must be installed as its users have it: not editable, and with nothing but its own dependencies. Where test
tools bring click, httpx imports its own command line: escrowctl stops that, and the minimal script would pay for it.

    python3 -m venv /tmp/own    && /tmp/own/bin/pip install -q .
    python3 -m venv /tmp/httpie && /tmp/httpie/bin/pip install -q httpie
    python3 tests/bench/startup.py --escrowctl /tmp/own/bin/escrowctl --http /tmp/httpie/bin/http

It prints a table and exits 1 where a bound is missed, 2 where a program is missing or fails, or click is installed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_ID = "tx_7K2M9QHD"
_REFERENCE = ("--reference", "order-{turn}", "--json")
_WARM_UP = 3
_CANNOT_MEASURE = 2
_HAS_CLICK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('click') is not None)"

_COMPARISONS = (
    ("--version", "python -c pass", 1.7),
    ("--json --version", "python -c pass", 1.7),
    ("--help", "python -c pass", 8),
    ("tx get ID --json", "minimal_get.py", 1.15),
    ("tx create", "tx get ID --json", 1.12),
    ("tx get ID --json", "http GET", None),
)
"""A command, another, and how many times as long it may take; None where the ratio is only reported."""


class Taken(NamedTuple):
    """What a run took, in seconds: elapsed, and of the processor."""

    elapsed: float
    processor: float


def main() -> int:
    """Measure, print the table, and return 1 where a bound is missed."""
    options = _read_options()
    server = [sys.executable, str(Path(__file__).with_name("limited_server.py")), "0"]
    with (
        subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert process.stdout is not None
        try:
            base_url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            environ = _clean_environment(Path(folder), base_url)
            taken = _measure(_commands(options, base_url), environ, options.runs)
        finally:
            process.terminate()
    return _report(taken, options.runs)


def _commands(options: argparse.Namespace, base_url: str) -> dict[str, list[str]]:
    minimal = str(Path(__file__).with_name("minimal_get.py"))
    commands = {
        "python -c pass": [options.python, "-c", "pass"],
        "--version": [options.escrowctl, "--version"],
        "--json --version": [options.escrowctl, "--json", "--version"],
        "--help": [options.escrowctl, "--help"],
        "minimal_get.py": [options.python, minimal, "tx", "get", _ID, "--json"],
        "tx get ID --json": [options.escrowctl, "tx", "get", _ID, "--json"],
        "tx create": [options.escrowctl, "tx", "create", "--amount", "100", "--currency", "USD", *_REFERENCE],
    }
    if options.http:
        commands["http GET"] = [options.http, "--ignore-stdin", "GET", f"{base_url}/api/v1/transactions/{_ID}"]
    return commands


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast escrowctl starts.")
    parser.add_argument("--escrowctl", default=shutil.which("escrowctl"), help="the installed script")
    parser.add_argument("--python", help="the interpreter of escrowctl (default: python in the same folder)")
    parser.add_argument("--http", default=shutil.which("http"), help="HTTPie's http, from a separate environment")
    parser.add_argument("--runs", type=int, default=25, help="runs of each command (default: 25)")
    options = parser.parse_args()
    if options.python is None and options.escrowctl:
        options.python = str(Path(options.escrowctl).parent / "python")
    for name in ("escrowctl", "python", *(("http",) if options.http else ())):
        path = getattr(options, name)
        if not path or not Path(path).is_file():
            parser.error(f"--{name} PATH is needed: {path or 'nothing of that name is on PATH'}")
    if subprocess.run([options.python, "-c", _HAS_CLICK], check=False).returncode != 0:
        parser.error(f"{options.python} has click, which escrowctl does not need: install escrowctl alone")
    return options


def _clean_environment(folder: Path, base_url: str) -> dict[str, str]:
    """Return an environment with fresh homes; HTTPie does not look for updates on the network."""
    config = folder / ".config" / "httpie"
    config.mkdir(parents=True)
    (config / "config.json").write_text(json.dumps({"disable_update_warnings": True, "default_options": []}))
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ESCROWCTL_HOME": str(folder / "escrowctl"),
        "ESCROWCTL_BASE_URL": base_url,
        "ESCROWCTL_API_KEY": "sk_test_0123456789abcdef",
    }


def _measure(commands: dict[str, list[str]], environ: dict[str, str], runs: int) -> dict[str, list[Taken]]:
    """Return what the runs of each command took; every round runs each once, from another start."""
    taken: dict[str, list[Taken]] = {name: [] for name in commands}
    names = list(commands)
    for turn in range(_WARM_UP + runs):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            # An identical create would also show a note about the one before.
            one = _run(name, [word.replace("{turn}", str(turn + 1)) for word in commands[name]], environ)
            if turn >= _WARM_UP:  # the first runs write byte code and fill the page cache
                taken[name].append(one)
    return taken


def _run(name: str, command: Sequence[str], environ: dict[str, str]) -> Taken:
    start, before = time.perf_counter(), _processor_seconds()
    done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    taken = Taken(time.perf_counter() - start, _processor_seconds() - before)
    if done.returncode != 0:
        sys.stderr.write(f"{name} ended with {done.returncode}: {done.stderr.decode(errors='replace')}\n")
        raise SystemExit(_CANNOT_MEASURE)
    return taken


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _report(taken: dict[str, list[Taken]], runs: int) -> int:
    missed = False
    for command, other, bound in _COMPARISONS:
        if other not in taken:
            print(f"{command:<18} {other} is absent")
            continue
        rounds = list(zip(taken[command], taken[other], strict=True))
        ratio = statistics.median(one.elapsed / against.elapsed for one, against in rounds)
        processor = statistics.median(one.processor / against.processor for one, against in rounds)
        took, other_took = (statistics.median(run.elapsed for run in taken[name]) for name in (command, other))
        is_missed = bound is not None and ratio > bound
        missed |= is_missed
        verdict = "" if bound is None else f"at most {bound:g}{'   MISSED' * is_missed}"
        print(f"{command:<18} {took * 1e3:7.1f} ms   {other:<18} {other_took * 1e3:7.1f} ms   "
              f"ratio {ratio:.2f} (processor {processor:.2f})   {verdict}")  # fmt: skip
    load = os.getloadavg()[0]
    print(f"{runs} runs of each, alternating; load of the machine {load:.1f} on {os.cpu_count()} cores")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
