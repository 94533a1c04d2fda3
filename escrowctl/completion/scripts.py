"""The scripts by shell."""

from typing import Any

from escrowctl.completion import bash, fish, zsh
from escrowctl.completion.tree import read_tree

_RENDERERS = {"bash": bash.render, "zsh": zsh.render, "fish": fish.render}


def render(shell: str, command: Any) -> str:  # Typer's own command type is private
    """Return the script for `shell` (bash, zsh, fish) that completes the tree below `command`."""
    return _RENDERERS[shell](read_tree(command))
