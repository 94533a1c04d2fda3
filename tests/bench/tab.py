"""Measure what one TAB takes in bash, with a full cache. pytest does not run this.

The completion function is called as readline calls it, many times in one bash, and timed by bash's
own clock (EPOCHREALTIME, bash 5); the median of the calls is printed for each line:

    python3 tests/bench/tab.py

It prints a table and exits 1 where a bound is missed, 2 where there is no bash 5.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BOUND_MS = 10.0
CALLS = 200
SCRIPT = Path(__file__).parents[2] / "completions" / "escrowctl.bash"
LINES = (
    "escrowctl ",
    "escrowctl tx create --currency ",
    "escrowctl -p acme tx get ",
    "escrowctl -p acme tx release tx_4",
    "escrowctl -p ",
)


def main() -> int:
    """Measure, print the table, and return 1 where a bound is missed."""
    bash = shutil.which("bash")
    if bash is None:
        return 2
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "cache" / "complete" / "acme"
        folder.mkdir(parents=True)
        (folder / "transaction").write_text("".join(f"tx_{number:0>10}AB\n" for number in range(500)))
        (folder.parent / "profile").write_text("".join(f"profile-{number}\n" for number in range(50)))
        slowest = 0.0
        for line in LINES:
            median, offered = measure(bash, line, home)
            slowest = max(slowest, median)
            sys.stdout.write(f"{median:7.2f} ms   {offered:4} offered   {line}\n")
    sys.stdout.write(f"{slowest:7.2f} ms   the slowest; bound {BOUND_MS:g}\n")
    return 0 if slowest <= BOUND_MS else 1


def measure(bash: str, line: str, home: str) -> tuple[float, int]:
    """Return the median of the calls in milliseconds, and how many words were offered."""
    *words, last = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in (*words, last))
    script = (
        f"source '{SCRIPT}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; for ((k = 0; k < {CALLS}; k++)); do "
        "before=${EPOCHREALTIME/./}; _escrowctl; after=${EPOCHREALTIME/./}; "
        'echo "$((after - before)) ${#COMPREPLY[@]}"; done'
    )
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env={"PATH": "/usr/bin:/bin", "ESCROWCTL_HOME": home},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [row.split() for row in done.stdout.splitlines()]
    taken = sorted(int(micros) for micros, _ in rows)
    return taken[len(taken) // 2] / 1000, int(rows[0][1])


if __name__ == "__main__":
    sys.exit(main())
