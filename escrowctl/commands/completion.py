"""`escrowctl completion`: print or install the completion script of a shell."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from escrowctl.config.folders import find_base_folder
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value
from escrowctl.files import open_regular, replace_quickly
from escrowctl.session import session_of

_SCRIPT_MODE = 0o644
_SCRIPT_MARK = "escrowctl: static, made by `escrowctl completion"
"""Every script of escrowctl has this in its first lines."""


def print_script(context: typer.Context) -> None:
    """Print the completion script for this shell. Needs bash 4, zsh 5 or fish 3. TAB then starts no program.

    \b
    Examples:
      source <(escrowctl completion bash)
      escrowctl completion bash > ~/.escrowctl-completion
      source <(escrowctl completion zsh)
      escrowctl completion zsh > "${fpath[1]}/_escrowctl"
      escrowctl completion fish | source
      escrowctl completion fish > ~/.config/fish/completions/escrowctl.fish
    """
    session_of(context).console.write_page(_render_script(context, context.command.name or "").rstrip("\n"))


def install(
    context: typer.Context,
    shell: Annotated[
        str | None, typer.Argument(metavar="[SHELL]", help="bash, zsh or fish; the default is your $SHELL.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that escrowctl did not write.")] = False,
) -> None:
    """Install the completion script where the shell finds it. No start-up file of the shell is changed.

    \b
    Examples:
      escrowctl completion install
      escrowctl completion install zsh
    """
    from escrowctl.completion.tree import SHELLS  # noqa: PLC0415 - help does not need it

    session = session_of(context)
    if session.options.sandbox:
        raise bad_value("completion install does not use a service: leave --sandbox out.")
    environ = session.runtime.environ
    name = shell if shell is not None else Path(environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise bad_value(f'there is no completion for the shell "{name}": use {", ".join(SHELLS)}.')
    path, how_to_use = _locate_script(name, environ)
    try:
        if path.exists() and not force:
            with os.fdopen(open_regular(path, os.O_RDONLY, follow=True), encoding="utf-8", errors="replace") as file:
                is_own_script = _SCRIPT_MARK in file.read(500)
            if not is_own_script:
                hint = "to replace the file: repeat the command with --force"
                raise bad_value(f"{path} exists and was not written by escrowctl.", hint=hint)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_quickly(path, _render_script(context, name).encode(), _SCRIPT_MODE)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}."
        raise EscrowctlError(ErrorCode.STATE_UNUSABLE, message) from error
    session.console.write_page(str(path))
    session.console.note("installed", how_to_use)


def _render_script(context: typer.Context, shell: str) -> str:
    from escrowctl.completion.scripts import render  # noqa: PLC0415 - help does not need it
    from escrowctl.completion.tree import read_tree  # noqa: PLC0415

    return render(shell, read_tree(context.find_root().command))


def _locate_script(shell: str, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Return the path where this shell looks for its completion script, and what the user must do to use it."""
    match shell:
        case "bash":
            folder = find_base_folder(environ, "XDG_DATA_HOME", ".local/share") / "bash-completion"
            if environ.get("BASH_COMPLETION_USER_DIR"):
                folder = find_base_folder(environ, "BASH_COMPLETION_USER_DIR", "")
            how_to_use = "to use completion, install the package bash-completion and open a new shell"
            return folder / "completions" / "escrowctl", how_to_use
        case "fish":
            folder = find_base_folder(environ, "XDG_CONFIG_HOME", ".config") / "fish/completions"
            return folder / "escrowctl.fish", "to use completion, open a new shell"
        case _:
            folder = find_base_folder(environ, "XDG_DATA_HOME", ".local/share") / "zsh/site-functions"
            how_to_use = f"if ~/.zshrc lacks this line, add it before compinit: fpath=({folder} $fpath)"
            return folder / "_escrowctl", how_to_use
