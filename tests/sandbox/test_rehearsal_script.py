"""The script of `escrowctl help sandbox`: it passes, and notices a client that sends a write again."""

import os
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import Result
from e2e.script import Program, clean_environment

TOPIC = Path(__file__).parents[2] / "escrowctl" / "topics" / "sandbox.txt"
SENDS_AGAIN = """
import sys
from escrowctl.client.connection import Connection
from escrowctl.main import main

exchange = Connection.exchange

def again(self, request, **keywords):
    found = exchange(self, request, **keywords)
    return exchange(self, request, **keywords) if found.answer is None else found

Connection.exchange = again
sys.exit(main(sys.argv[1:]))
"""


def rehearse(folder: Path, *, path: str = "") -> Result:
    shown = TOPIC.read_text()
    script = textwrap.dedent(shown[shown.index("  #!/bin/sh") : shown.index("\nEVENTS AND TIME")])
    program = Program(clean_environment(folder / "home"))
    return program.with_environ(TMPDIR=str(folder), PATH=path + program.environ["PATH"]).bash(script)


@pytest.mark.slow
def test_script_of_the_help_passes(tmp_path: Path) -> None:
    done = rehearse(tmp_path)

    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.slow
def test_script_of_the_help_notices_a_write_that_is_sent_twice(tmp_path: Path) -> None:
    program, broken = tmp_path / "again.py", tmp_path / "escrowctl"
    program.write_text(SENDS_AGAIN)
    # The path of the interpreter may have a space, which a first line cannot have.
    broken.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(program))} "$@"\n')
    broken.chmod(0o755)

    done = rehearse(tmp_path, path=f"{tmp_path}{os.pathsep}")

    assert (done.code, "exit 0, not 12" in done.out) == (1, True)
