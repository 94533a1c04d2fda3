"""`escrowctl version`: the facts about this installation for a bug report."""

import typer

from escrowctl import __version__
from escrowctl.session import session_of


def show(context: typer.Context) -> None:
    """Print the versions, the paths and the journal's format.

    escrowctl --version prints only the version of escrowctl.

    \b
    Examples:
      escrowctl version
      escrowctl version --json | jq -r .journal
    """
    import platform  # noqa: PLC0415 - help does not need it

    from escrowctl.commands.config import find_paths  # noqa: PLC0415
    from escrowctl.contract.json import JsonValue, Number  # noqa: PLC0415
    from escrowctl.journal.sqlite.files import FORMAT_VERSION  # noqa: PLC0415
    from escrowctl.output.view import View  # noqa: PLC0415

    session = session_of(context)
    paths = find_paths(session)
    found: dict[str, JsonValue] = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: paths[name] for name in ("config", "journal", "cache")},
        "journal_format": Number(str(FORMAT_VERSION)),
    }
    session.show(View(found, __version__, found))
