"""`escrowctl tx get` and `user get`: read one or several records by id, and show the records."""

from functools import partial
from typing import Annotated, TextIO

import typer

from escrowctl.contract.identifiers import parse_id
from escrowctl.contract.operations import GET_TRANSACTION, GET_USER, Operation
from escrowctl.contract.readable import explain_wrong_record
from escrowctl.contract.record import Record, has_other_id
from escrowctl.errors import ErrorCode, EscrowctlError, adding_id, bad_value, command
from escrowctl.options import IdsArgument
from escrowctl.output.view import View, view_record
from escrowctl.session import Session, session_of

_MAX_LINE_CHARS = 1024
_MAX_LINES = 1_000_000
_BYTE_ORDER_MARK = "\ufeff"


def get_transactions(context: typer.Context, ids: IdsArgument = None) -> None:
    """Show escrows as the service describes them.

    \b
    Examples:
      escrowctl tx get tx_7K2M9QHD --json
      escrowctl tx get tx_7K2M9QHD tx_9QHD7K2M --fields id,status
    """
    show_by_id(session_of(context), GET_TRANSACTION, ids)


def get_users(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="User ids, or - for stdin.")] = None,
) -> None:
    """Show users as the service describes them.

    \b
    Examples:
      escrowctl user get usr_PAYER001 --json
      escrowctl user get usr_PAYER001 usr_PAYEE001
    """
    show_by_id(session_of(context), GET_USER, ids)


def read_ids(arguments: list[str] | None, stdin: TextIO, *, noun: str = "transaction") -> tuple[list[str], bool]:
    """Return the ids, and whether the output has one line for each. `["-"]` reads ids from stdin, one a line.

    Raises EscrowctlError `BAD_VALUE` if an id is invalid, or if there is no id.
    """
    if not arguments:
        raise bad_value(f"no {noun} id is given: name one or more, or - to read them from standard input.")
    if arguments != ["-"]:
        if "-" in arguments:
            raise bad_value('"-" reads all ids from standard input: leave the other ids out.')
        return [parse_id(text, noun=noun) for text in arguments], len(arguments) > 1
    ids = []
    try:
        # A line too long for an id is split: `parse_id` refuses its first part.
        for number, line in enumerate(iter(partial(stdin.readline, _MAX_LINE_CHARS), ""), start=1):
            if number > _MAX_LINES:
                raise bad_value(f"standard input has more than {_MAX_LINES} lines: give fewer ids at once.")
            if text := line.lstrip(_BYTE_ORDER_MARK).strip():
                ids.append(parse_id(text, noun=noun))
    except UnicodeDecodeError as error:
        raise bad_value("standard input is not text: write one id per line.") from error
    if not ids:
        raise bad_value("standard input has no id: write one id per line.")
    return ids, True


def show_by_id(session: Session, operation: Operation, ids: list[str] | None) -> None:
    """Read the records with these ids, and show them. If there are several, each is one line. See `read_ids`."""
    wanted, several = read_ids(ids, session.runtime.stdin, noun=operation.noun)
    session.service.refuse_key(*wanted)
    if several:
        from escrowctl.commands.several import run_several  # noqa: PLC0415 - one id does not need it

        run_several(session, wanted, lambda one: _read_view(session, operation, one, several=True))
        session.remember_ids(operation.noun, dict.fromkeys(wanted))
        return
    view = _read_view(session, operation, wanted[0], several=False)
    session.show(view)
    session.remember_ids(operation.noun, {wanted[0]: view.named["status"]})


def _read_view(session: Session, operation: Operation, resource_id: str, *, several: bool) -> View:
    """Read a record and return its view. Raises the errors of a read, and `CHECK_FAILED`.

    `CHECK_FAILED` means that the record cannot be the requested one, or has no id for `-q` to print. Show the view
    before raising it, unless `-q` prints ids: a script would use the output as the requested id.
    """
    options = session.options
    with adding_id(resource_id):
        record = session.reader.read(operation, resource_id)
    if several:
        view = view_one_of_several(session, record, resource_id)
    else:
        view = view_record(record, resource_id if operation is GET_USER else None, raw=options.raw)
    prints_ids = options.quiet and (not options.fields or "id" in options.fields)
    if operation is GET_USER:
        if has_other_id(resource_id, record.known):
            session.console.warn("another_id", f"the service answered for {resource_id} with the id {record.known.id}")
        why = None if isinstance(record.value, dict) else f"the reply for {resource_id} is JSON, but not an object"
    else:
        why = explain_wrong_record(resource_id, record)
        if why is None and prints_ids and record.known.id is None:
            why = f"the record of {resource_id} has no id, so -q has nothing to print"
    if why is None:
        return view
    # For several ids under --json and --raw, `run_several` prints the record with the error.
    if not (prints_ids or (several and (options.json or options.raw))):
        (session.console.show_line if several else session.show)(view)
    look = command(f"api GET {operation.fill_path(resource_id)}", "to see the complete reply")
    facts = {"id": resource_id, "body": record.document}
    raise EscrowctlError(ErrorCode.CHECK_FAILED, f"{why}.", hint=look, facts=facts)


def view_one_of_several(session: Session, record: Record, resource_id: str) -> View:
    """Return the view of one of several records. Its JSON has the requested id, the outcome and the record."""
    view = view_record(record, resource_id, raw=session.options.raw)
    return view._replace(document={"id": resource_id, "outcome": "read", "record": view.document}, outcome="read")
