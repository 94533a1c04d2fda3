"""Nothing is read without a limit: endless input ends with a sentence."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import internals
import pytest
from conftest import KEY, Run, Serve, ServiceAndRun, Terminal

from cli.replies import CREATE, HELD, json_reply
from escrowctl.main import main
from escrowctl.runtime import Runtime

MOST = 64 * 1024 * 1024
"""More characters than any line of input needs."""


class Endless(io.TextIOBase):
    """A text stream that repeats one text for ever, as `yes` does; it fails the test that reads too much of it."""

    def __init__(self, text: str, *, terminal: bool = False) -> None:
        self.text = text
        self.terminal = terminal
        self.count = 0

    def isatty(self) -> bool:
        return self.terminal

    def read(self, size: int | None = -1, /) -> str:
        return self._take(size)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override] # the base class's is of bytes or text
        return self.text if self.text.endswith("\n") else self._take(size)

    def _take(self, size: int | None) -> str:
        assert size is not None
        assert 0 <= size <= MOST, "read without a limit"
        self.count += size
        assert self.count <= MOST, "read without end"
        return (self.text * size)[:size]


RunWithEndlessInput = Callable[..., tuple[int, str]]


@pytest.fixture
def run_with_endless_input(home: Path, serve: Serve) -> RunWithEndlessInput:
    """Run a line whose standard input never ends; returns the exit code and stderr."""
    server = serve(json_reply(HELD))

    def run_line(*words: str, text: str = "\0", terminal: bool = False) -> tuple[int, str]:
        err = Terminal() if terminal else io.StringIO()
        environ = dict(os.environ)
        if "login" not in words:
            environ |= {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
        stdin = Endless(text, terminal=terminal)
        around = Runtime(environ=environ, stdin=stdin, stdout=io.StringIO(), stderr=err)  # type: ignore[arg-type] # a stream as good as TextIO
        return int(main(words, around)), err.getvalue()

    return run_line


LOGIN = ("auth", "login", "--base-url", "https://a.example.com", "--mode", "test", "-p", "a", "--no-check")


@pytest.mark.parametrize(
    "line", [("tx", "release", "-", "--yes"), (*CREATE, "--data", "@-"), ("journal", "import", "-"), LOGIN]
)
def test_endless_input_is_refused(run_with_endless_input: RunWithEndlessInput, line: tuple[str, ...]) -> None:
    code, said = run_with_endless_input(*line)

    assert (code, "defect" in said) == (2, False)


def test_lines_without_end_are_refused(
    run_with_endless_input: RunWithEndlessInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals.MAX_LINES, 1000)

    assert run_with_endless_input("tx", "get", "-", text="\n")[0] == 2


def test_an_endless_answer_is_no_confirmation(run_with_endless_input: RunWithEndlessInput) -> None:
    assert run_with_endless_input("tx", "release", "tx_1", text="x", terminal=True)[0] == 3


def test_data_file_beyond_the_limit_is_refused(service_and_run: ServiceAndRun, tmp_path: Path) -> None:
    server, run = service_and_run(json_reply(HELD))
    path = tmp_path / "data"
    path.write_bytes(b" " * (16 * 1024 * 1024 + 1))

    result = run(*CREATE, "--data", f"@{path}", "--json")

    assert (result.code, server.seen) == (2, [])


def test_repetition_is_found_among_sixty_thousand_ids(run: Run) -> None:
    ids = "".join(f"tx_{number}\n" for number in range(60_000))

    environ = {"ESCROWCTL_BASE_URL": "https://a.example.com"}
    result = run("tx", "release", "-", "--yes", stdin=ids + "tx_1\n", environ=environ)

    assert result.code == 2
    assert "transaction id tx_1 is given twice" in result.err
