"""Draws the pictures of README: what real runs show at a terminal, as SVG by rich.

    python .github/pictures/draw.py

It needs escrowctl with its test requirements installed; each run has a folder of its own, and no network.
"""

import os
import re
import socket
import tempfile
import threading
from io import StringIO
from pathlib import Path

import pexpect
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS = 100
_PROMPT = "@@ "
"""What no run prints; the pictures show a dollar sign."""
_MOVES = re.compile(r"\x1b\[[0-9;?]*[A-HJ-LP-Za-ln-z]")
"""Control sequences other than colours."""

Steps = tuple[tuple[str, ...], ...]
"""A command line, and the answers to its questions; `{id}` is the last id that was shown, `^C` is Ctrl-C."""

PICTURES: dict[str, tuple[str, Steps]] = {
    "first-minutes": (
        "An escrow is created and released in the sandbox",
        (
            ("escrowctl --sandbox tx create --amount 100 --currency USD",),
            ("escrowctl --sandbox tx release {id}", "{id}"),
            ("escrowctl --sandbox tx release {id} --yes",),
        ),
    ),
    "unknown": (
        "A create without a reply, and the same line again",
        (
            ("escrowctl tx create --amount 2500 --currency EUR",),
            ("escrowctl tx create --amount 2500 --currency EUR",),
            ('escrowctl journal resolve j1 --not-applied --allow-unreadable --reason "support ticket 5512"',),
        ),
    ),
    "batch": (
        "A file of 400 rows",
        (
            ("escrowctl --sandbox batch create payouts.csv", "400"),
            ("escrowctl --sandbox batch create payouts.csv --yes",),
        ),
    ),
    "errors": (
        "Bad input, and what to write instead",
        (
            ("escrowctl --sandbox tx create --amount 1,000 --currency USD",),
            ("escrowctl --sandbox tx create --amount 10.005 --currency USD",),
            ("escrowctl create tx",),
            ("escrowctl --sandbox doctor",),
        ),
    ),
}


def main() -> None:
    """Draw every picture."""
    for name, (title, steps) in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            shown = run(steps, Path(folder), silent_service())
        console = Console(width=COLUMNS, record=True, file=StringIO(), force_terminal=True)
        console.print(Text.from_ansi(shown), soft_wrap=False)
        console.save_svg(str(HERE / f"{name}.svg"), title=title)


def silent_service() -> str:
    """Start a server that reads a request and never replies, and return its URL."""
    server = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            kept.append(server.accept()[0])

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def run(steps: Steps, folder: Path, url: str) -> str:
    """Type the steps into a shell at a terminal, and return what it shows."""
    rows = "".join(f"{100 + number}.50,{'EUR' if number % 5 else 'USD'},A-{number}\n" for number in range(400))
    (folder / "payouts.csv").write_text(f"amount,currency,reference\n{rows}")
    (folder / "config.toml").write_text(f'default_profile = "acme"\n[profiles.acme]\nbase_url = "{url}"\ntimeout = 2\n')
    environ = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "ESCROWCTL_HOME": str(folder),
        "ESCROWCTL_API_KEY_FILE": str(folder / "key"),
        "PS1": _PROMPT,
    }
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_text("sk_test_for_the_pictures")
    # Not echoed: each line is shown as it was typed.
    shell = pexpect.spawn(
        "bash",
        ["--norc", "--noediting"],
        env=environ,
        cwd=folder,
        encoding="utf-8",
        dimensions=(60, COLUMNS),
        echo=False,
    )
    shell.expect_exact(_PROMPT)
    found, shown = "", ""
    for line, *answers in steps:
        typed = line.format(id=found)
        shell.sendline(typed)
        shown += f"\x1b[1m$ {typed}\x1b[0m\n"
        for answer in answers:
            shell.expect_exact("> ")
            shown += f"{shell.before}> {answer.format(id=found)}\n"
            shell.sendline(answer.format(id=found))
        shell.expect_exact(_PROMPT, timeout=60)
        shown += f"{shell.before}\n"
        found = next(iter(re.findall(r"tx_[0-9A-Z]{8}", shown)), found)
    shell.close()
    return _settle(shown).replace(url, "https://escrow.example.com").replace(str(folder), "~")


def _settle(text: str) -> str:
    """Return what stays of a text on a screen: of a line that is drawn again and again, its last form."""
    lines = [line.rpartition("\r")[2] if not line.endswith("\r") else line.rstrip("\r") for line in text.split("\n")]
    bare = [_MOVES.sub("", line.rpartition("\r")[2]) for line in lines]
    return "\n".join(line for line in bare if line.strip())


if __name__ == "__main__":
    main()
