"""`escrowctl sandbox set|magic|move|ledger`: set faults; show or change the sandbox's records."""

from typing import Annotated

import typer

from escrowctl.commands.sandbox.calls import call_sandbox, list_items, sandbox_session
from escrowctl.contract.json import JsonValue, as_json, encode
from escrowctl.errors import ErrorCode, EscrowctlError, command
from escrowctl.output.view import Listing, View

_ENTRY_COLUMNS = ("entry", "transaction", "move", "account", "currency", "amount", "posted_at")
_SUM_COLUMNS = ("currency", "entries", "sum", "held", "balanced")
_MAGIC_COLUMNS = ("kind", "value", "outcome")


def set_values(
    context: typer.Context,
    values: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="Faults and variants.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="First remove all faults and variants.")] = False,
) -> None:
    """Set faults and variants of the sandbox, and show what is set.

    FAULT in fault.OPERATION=FAULT is drop-reply, latency:2s, 429:5s, 500, bad-json, truncated,
    reset, or off for no fault. Add ,3x for only the next three requests, ,20% for one in five.
    For the operations and the variants: escrowctl help sandbox

    \b
    Examples:
      escrowctl sandbox set fault.create=drop-reply,1x
      escrowctl sandbox set variant.fields=camel fault.release=latency:2s
      escrowctl sandbox set --clear
    """
    session = sandbox_session(context)
    from escrowctl.sandbox.settings import read_settings  # noqa: PLC0415 - help does not need it

    texts = read_settings(values or [])
    if clear:
        call_sandbox(session, "DELETE", "/sandbox/settings")
    found = call_sandbox(session, "PUT", "/sandbox/settings", as_json(texts))
    views = tuple(View({name: value}, name, named={"name": name, "value": value}) for name, value in found.items())
    session.console.show_listing(Listing(("name", "value"), views, document=found))


def magic(context: typer.Context) -> None:
    """List the amounts and ids with a fixed outcome in the sandbox.

    \b
    Examples:
      escrowctl sandbox magic
      escrowctl sandbox magic --json
    """
    session = sandbox_session(context)
    from escrowctl.sandbox.magic import MAGIC_AMOUNTS, MAGIC_IDS  # noqa: PLC0415 - help does not need it

    rows = [("amount", amount, outcome) for amount, outcome in MAGIC_AMOUNTS.items()]
    rows += [("id", name, f"always {state}, 100 USD; cannot be moved") for name, state in MAGIC_IDS.items()]
    found: list[dict[str, JsonValue]] = [dict(zip(_MAGIC_COLUMNS, row, strict=True)) for row in rows]
    views = tuple(View(one, str(one["value"]), named=one) for one in found)
    session.console.show_listing(Listing(_MAGIC_COLUMNS, views, keys=("kind", "value")))


def move(
    context: typer.Context,
    transaction_id: Annotated[str, typer.Argument(metavar="ID", help="An escrow of the sandbox.")],
    status: Annotated[str, typer.Argument(metavar="STATUS", help="The new status, such as disputed or released.")],
) -> None:
    """Move an escrow of the sandbox to another status.

    A held escrow can move to any other status, a releasing one to released, a disputed one to
    held or refunded. The sandbox's ledger records the move; the journal does not.

    \b
    Examples:
      escrowctl sandbox move tx_7K2M9QHD disputed
      escrowctl sandbox move tx_7K2M9QHD refunded --json
    """
    session = sandbox_session(context)
    found = call_sandbox(session, "POST", "/sandbox/moves", {"id": transaction_id, "status": status})
    before, after = found["status_before"], found["status"]
    session.show(View(found, transaction_id, found, line=f"{transaction_id}   {before} -> {after}", named=found))


def ledger(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Show only the sums; fail if one is not zero or disagrees with the records.")
    ] = False,
) -> None:
    """Show the sandbox's ledger: its entries, and sums per currency.

    Each move has two entries, which add up to zero. --check compares the held money with the records.

    \b
    Examples:
      escrowctl sandbox ledger
      escrowctl sandbox ledger --check --json
    """
    session = sandbox_session(context)
    found = call_sandbox(session, "GET", "/sandbox/ledger")
    sums = list_items(found["currencies"])
    if check:
        session.console.show_listing(Listing(_SUM_COLUMNS, tuple(View(one, None, named=one) for one in sums)))
        if wrong := [str(one["currency"]) for one in sums if one["balanced"] is not True]:
            message = f"the ledger does not add up in {', '.join(wrong)}: money was created or lost."
            hint = command("sandbox ledger", "to see the entries", bare=True)
            raise EscrowctlError(ErrorCode.CHECK_FAILED, message, hint=hint, facts={"currencies": wrong})
        return
    views = tuple(View(one, str(one["transaction"]), named=one) for one in list_items(found["entries"]))
    session.console.show_listing(Listing(_ENTRY_COLUMNS, views, document=found, keys=("entry", "account")))
    for one in sums:
        text = {name: encode(value) for name, value in one.items()}
        count, total, held = text["entries"], text["sum"], text["held"]
        session.console.note("sum", f"{one['currency']}: {count} entries, sum {total}, held {held}", label="ledger")
