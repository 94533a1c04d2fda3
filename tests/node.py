"""Node, with the JavaScript library of Standard Webhooks."""

import shutil
import subprocess

import pytest


def find_node() -> str:
    """Return the path of node; skips the test without it, or where it does not find the library."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    found = subprocess.run([node, "-e", "require('standardwebhooks')"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("standardwebhooks from npm is in no folder that NODE_PATH names: see .github/CONTRIBUTING.md")
    return node
