"""`escrowctl sandbox play`: rehearsals from files, for a person and for CI."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from escrowctl.commands.sandbox.service import refuse_elsewhere
from escrowctl.contract.json import JsonValue, as_json
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.output.view import Listing, View
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from escrowctl.sandbox.player import Played

_COLUMNS = ("scenario", "about")


def play(
    context: typer.Context,
    scenario: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO]", help="A TOML file, or the name of one that is listed.")
    ] = None,
) -> None:
    """Play a scenario; it ends with 16 where a step differs.

    Its sandbox and journal are new, and are removed at the end. Without SCENARIO it
    lists those that come with escrowctl. How to write one: escrowctl help sandbox.

    \b
    Examples:
      escrowctl sandbox play
      escrowctl sandbox play time-out
      escrowctl sandbox play runbook/double-release.toml --json
    """
    session = session_of(context)
    refuse_elsewhere(session)
    from escrowctl.sandbox.player import play as run_steps  # noqa: PLC0415 - for those who play
    from escrowctl.sandbox.scenario import list_shipped, read_scenario  # noqa: PLC0415

    if scenario is None:
        _list(session, list_shipped())
        return
    runtime = session.runtime
    found = read_scenario(scenario)
    session.console.note("about", found.about, word=scenario)
    for played in run_steps(found, runtime.program, runtime.environ, now=runtime.now):
        session.console.show_line(_view(played))
        if not played.passed:
            raise _failed(played, left=len(found.steps) - played.number)
    session.console.note("played", f"{len(found.steps)} steps, all as expected", word=scenario)


def _list(session: Session, shipped: dict[str, str]) -> None:
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in shipped.items()]
    views = tuple(View(as_json(row), row["scenario"], named=_named(row)) for row in rows)
    session.console.show_listing(Listing(_COLUMNS, views))
    session.next_step("sandbox play NAME")


def _view(played: "Played") -> View:
    outcome = "ok" if played.passed else "differs"
    named = _named({"step": played.number, "outcome": outcome, "exit_code": played.exit_code, "run": played.line})
    document = named | _named({"expected_exit": played.expected_exit, "differences": list(played.differences)})
    line = f"{played.number:>2}  {outcome:<7}  {played.exit_code:>3}  {played.line}"
    return View(document, str(played.number), named, line=line, named=named)


def _named(values: Mapping[str, object]) -> dict[str, JsonValue]:
    found = as_json(values)
    assert isinstance(found, dict), "a mapping was given"
    return found


def _failed(played: "Played", *, left: int) -> EscrowctlError:
    rest = f" The {left} steps after it did not run." if left > 1 else " The step after it did not run." if left else ""
    return EscrowctlError(
        ErrorCode.CHECK_FAILED,
        f"step {played.number} differs: {'; '.join(played.differences)}.{rest}",
        hint=f'the step reported: "{played.error}"' if played.error else (),
        facts={"step": played.number, "differences": list(played.differences)},
    )
