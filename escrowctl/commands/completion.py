"""`escrowctl completion`: the script for a shell, as it stands in `completions/`."""

from typing import Annotated

import typer

from escrowctl.errors import bad_value
from escrowctl.session import session_of

SHELLS = ("bash", "zsh", "fish")


def show(
    context: typer.Context, shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]
) -> None:
    """Print the completion script for a shell.

    It is static: pressing TAB reads no file of yours and starts no program.

    \b
    Examples:
      escrowctl completion bash > ~/.local/share/bash-completion/completions/escrowctl
      escrowctl completion fish > ~/.config/fish/completions/escrowctl.fish
      escrowctl completion zsh > "${fpath[1]}/_escrowctl"
    """
    if shell not in SHELLS:
        raise bad_value(f'there is no completion for "{shell}": name {", ".join(SHELLS)}.')
    # The tree imports this module at every start; the generator is for those who ask for it.
    from escrowctl.completion.scripts import render  # noqa: PLC0415

    session_of(context).console.data(render(shell, context.find_root().command).rstrip("\n"))
