"""`webhook listen` between applications of others, which sign and verify with the libraries of Standard Webhooks."""

import contextlib
import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.script import Program
from node import find_node
from webhook_sender import SECRET

from webhooks.listener import SECONDS, Listener, wait_until

FOLDER = Path(__file__).parent


@pytest.fixture
def shop() -> Iterator[str]:
    """The URL of a web application in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(FOLDER / "shop.py"), SECRET],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    process.kill()
    process.communicate()


def call(url: str, *, method: str = "GET") -> str:
    with contextlib.closing(
        urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=SECONDS)
    ) as answer:
        return str(answer.read().decode())


@pytest.mark.thorough
def test_event_of_a_web_application_reaches_another_one(shop: str, program: Program, tmp_path: Path) -> None:
    with contextlib.closing(Listener(program, tmp_path, "--forward-to", f"{shop}/hooks", "--json")) as listener:
        to = urllib.parse.quote(f"http://127.0.0.1:{listener.port}/")
        sent = call(f"{shop}/sell?to={to}", method="POST")
        wait_until(lambda: call(f"{shop}/hooks"))
        code = listener.stop()

    lines = [json.loads(line) for line in listener.output.splitlines()]
    (event,) = (line for line in lines if "id" in line)
    assert (sent, code, call(f"{shop}/hooks")) == ("200", 143, "msg_1")
    assert (event["verified"], event["forward"]["http_status"]) == (True, 204)


@pytest.mark.thorough
def test_event_of_the_javascript_library_is_verified(program: Program, tmp_path: Path) -> None:
    node = find_node()
    with contextlib.closing(Listener(program, tmp_path, "--json")) as listener:
        line = [node, str(FOLDER / "shop.cjs"), SECRET, f"http://127.0.0.1:{listener.port}/"]
        sent = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        listener.stop()

    (event,) = (found for text in listener.output.splitlines() if "id" in (found := json.loads(text)))
    assert (sent, event["id"], event["verified"]) == ("200\n", "msg_node", True)
