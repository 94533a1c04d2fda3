"""`escrowctl sandbox serve`, `status` and `reset`: run, inspect and empty the built-in service."""

import contextlib
import os
from typing import Annotated

import typer

from escrowctl.commands.sandbox.calls import call_sandbox, sandbox_session
from escrowctl.contract.json import JsonValue, Number, as_json, encode
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.errors import ErrorCode, ExitCode
from escrowctl.options import PortOption, ReadyFileOption, YesOption
from escrowctl.output.view import View


def serve(
    context: typer.Context,
    port: PortOption = 4650,
    ready_file: ReadyFileOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A fault or variant, as in sandbox set.")
    ] = None,
) -> None:
    """Serve the sandbox on this machine, and deliver its events.

    Other programs can call the server over HTTP. Its records are those of --sandbox: while it
    runs, --sandbox commands call it. Ctrl-C or SIGTERM lets it finish open requests and stops it.

    \b
    Examples:
      escrowctl sandbox serve
      escrowctl sandbox serve --port 0 --ready-file ready.json --json
      escrowctl sandbox serve --set fault.create=drop-reply,1x
    """
    session = sandbox_session(context)
    from escrowctl.loopback import LoopbackServer  # noqa: PLC0415 - help does not need it
    from escrowctl.ready_file import ready_file_written, refuse_unrelated_file  # noqa: PLC0415
    from escrowctl.sandbox.ownership import ServedSandbox, announce_server  # noqa: PLC0415
    from escrowctl.sandbox.service import open_sandbox  # noqa: PLC0415
    from escrowctl.sandbox.settings import read_settings  # noqa: PLC0415

    texts = read_settings(settings or [])
    if ready_file is not None:
        ready_file = ready_file.absolute()
        refuse_unrelated_file(ready_file)
    with session.signals.held(), contextlib.ExitStack() as cleanup:
        sandbox = open_sandbox(session.journals.sandbox_folder, now=session.runtime.now, alone=True)
        cleanup.callback(sandbox.close)
        sandbox.rehearsal.change(texts)
        server = LoopbackServer(port)
        cleanup.callback(server.close)
        served = ServedSandbox(server.base_url, sandbox.key, sandbox.identity, os.getpid())
        cleanup.enter_context(announce_server(sandbox.claim, served))
        document: dict[str, JsonValue] = {
            "base_url": served.base_url,
            "api_prefix": DEFAULT_API_PREFIX,
            "key": served.key,
            "openapi": f"{served.base_url}/openapi.json",
            "pid": Number(str(served.pid)),
        }
        if ready_file is not None:
            cleanup.enter_context(ready_file_written(ready_file, encode(document) + "\n"))
        session.show(View(document, served.base_url, {**document, "store": str(session.journals.sandbox_folder)}))
        session.console.note("sandbox", "built in, no real money; press Ctrl-C to stop it", label="sandbox")
        export = f"export ESCROWCTL_BASE_URL={served.base_url} ESCROWCTL_API_KEY={served.key}"
        session.console.note("next", f"{export}    or: {session.invocation.program} --sandbox ...", label="next")

        def is_over() -> bool:
            # The sandbox is not served without deliveries.
            sandbox.sender.raise_background_error()
            return session.signals.pending is not None

        with sandbox.sender.working_in_background():
            sandbox.app.server = server
            server.run(sandbox.app, is_over, commit_group=sandbox.store.group)
        stopped_by = session.signals.take_pending()
    if stopped_by is ErrorCode.INTERRUPTED:
        session.console.note("stopped", "stopped", label="sandbox")
        raise typer.Exit(ExitCode.INTERRUPTED)


def status(context: typer.Context) -> None:
    """Show the settings, records, ledger and server of the sandbox.

    \b
    Examples:
      escrowctl sandbox status
      escrowctl sandbox status --json
    """
    session = sandbox_session(context)
    from escrowctl.sandbox.ownership import find_server  # noqa: PLC0415 - help does not need it

    found = call_sandbox(session, "GET", "/sandbox/status")
    folder = session.journals.sandbox_folder
    served = find_server(folder)
    base_url, pid = (served.base_url, served.pid) if served else (None, None)
    document = {"store": str(folder), "served_at": base_url, "pid": pid, **found}
    # The keys are the names of `sandbox set`: fault.create, variant.prefix.
    shown = {name: value for name, value in document.items() if name != "settings"}
    settings = found["settings"]
    assert isinstance(settings, dict), "the sandbox's own document"
    for kind in ("fault", "variant"):
        if one := {name.partition(".")[2]: value for name, value in settings.items() if name.startswith(kind)}:
            shown[kind] = as_json(one)
    session.show(View(as_json(document), str(found["identity"]), as_json(shown)))


def reset(
    context: typer.Context,
    yes: YesOption = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=999_999_999, help="Make ids and random faults repeatable with this number."
        ),
    ] = None,
) -> None:
    """Empty the sandbox, and change its identity and API key.

    \b
    Examples:
      escrowctl sandbox reset
      escrowctl sandbox reset --yes --seed 7
    """
    session = sandbox_session(context)
    from escrowctl.sandbox.service import reset_sandbox  # noqa: PLC0415 - help does not need it

    if not yes:
        folder = session.journals.sandbox_folder
        lines = [f"  {folder}", "This deletes every escrow in the sandbox. To continue, type reset:"]
        session.prompt.confirm(lines, "reset", why="sandbox reset needs confirmation", declined="nothing was deleted")
    with session.signals.held():
        reset_sandbox(session.journals.sandbox_folder, now=session.runtime.now, seed=seed)
        message = "the sandbox is empty now and has a new identity and a new API key"
        session.console.note("reset", message, label="sandbox")
        status(context)
