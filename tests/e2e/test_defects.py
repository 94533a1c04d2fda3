"""A defect in escrowctl itself: one sentence, exit 1, and a traceback for those who ask."""

import json
import stat
from pathlib import Path

import pytest
from conftest import KEY, Serve
from wire_server import answering, http_reply

from e2e.script import Program

_BROKEN = """
import sys
from {module} import {owner}
from escrowctl.main import main

def break_down(*_arguments):
    raise ValueError("an unexpected place, with {key} in it")

{owner}.{method} = break_down
sys.exit(main())
"""


def _break(method: str) -> str:
    """Return a program whose method fails, such as `client.reader.Reader.read`."""
    module, owner, name = method.rsplit(".", 2)
    return _BROKEN.format(key=KEY, module=f"escrowctl.{module}", owner=owner, method=name)


@pytest.fixture
def connected_program(program: Program, serve: Serve) -> Program:
    """The program, pointed at a server that would answer."""
    return program.at(serve(answering(http_reply("200 OK", b'{"id":"tx_1"}'))))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("client.reader.Reader.read", ("tx", "get", "tx_1")),
        ("writes.pipeline.Pipeline.run", ("tx", "create", "--amount", "1", "--currency", "USD")),
    ],
)
def test_a_defect_is_one_sentence_and_never_a_traceback(
    connected_program: Program, method: str, words: tuple[str, ...]
) -> None:
    ended = connected_program.python(_break(method), *words)
    assert (ended.code, ended.out) == (1, "")
    first, *_, last = ended.err.splitlines()
    assert first.startswith("error: internal error")
    report = Path(last.partition(": ")[2].strip())
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    document = json.loads(report.read_text())
    assert document["command"] == f"escrowctl {words[0]} {words[1]}"
    (exception,) = document["exceptions"]
    assert (exception["type"], exception["frames"][-1]) == ("builtins.ValueError", "__main__:7 break_down")
    assert exception["frames"][0].startswith("escrowctl.main:")
    assert "unexpected place" not in report.read_text()


@pytest.mark.slow
def test_newest_twenty_crash_reports_are_stored(connected_program: Program, tmp_path: Path) -> None:
    code = _break("client.reader.Reader.read").replace("sys.exit(main())", "for _ in range(25): main()")
    connected_program.python(code, "tx", "get", "tx_1")
    assert 1 <= len(list(tmp_path.rglob("crashes/*.json"))) <= 20


@pytest.mark.slow
def test_a_defect_under_debug_has_its_traceback_without_the_key(connected_program: Program) -> None:
    ended = connected_program.python(_break("client.reader.Reader.read"), "tx", "get", "tx_1", "--debug")
    assert (ended.code, ended.out, KEY in ended.err) == (1, "", False)
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert ended.err.index("in break_down\n") < ended.err.index("error: internal error")


def test_process_with_a_key_leaves_no_core_dump(connected_program: Program) -> None:
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_CORE, (65536, resource.RLIM_INFINITY)); "
    code += "from escrowctl.main import main; main(); print(resource.getrlimit(resource.RLIMIT_CORE)[0])"

    assert connected_program.python(code, "tx", "get", "tx_1", "-q").out == "tx_1\n0\n"
