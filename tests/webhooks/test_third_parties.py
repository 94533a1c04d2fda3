"""`webhook listen` takes what the JavaScript library of Standard Webhooks signs."""

import contextlib
import json
import subprocess
from pathlib import Path

import pytest
from e2e.script import Program
from node import find_node
from webhook_sender import SECRET

from webhooks.listener import Listener

FOLDER = Path(__file__).parent


@pytest.mark.slow
def test_event_of_the_javascript_library_is_verified(program: Program, tmp_path: Path) -> None:
    node = find_node()
    with contextlib.closing(Listener(program, tmp_path, "--json")) as listener:
        line = [node, str(FOLDER / "shop.cjs"), SECRET, f"http://127.0.0.1:{listener.port}/"]
        sent = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        listener.stop()

    (event,) = (found for text in listener.output.splitlines() if "id" in (found := json.loads(text)))
    assert (sent, event["id"], event["verified"]) == ("200\n", "msg_node", True)
