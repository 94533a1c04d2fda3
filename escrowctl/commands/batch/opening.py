"""Check the file of a batch command; find a batch by its name, and refuse it to other services and accounts."""

import io
import os
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from escrowctl.batch.check import CheckedFile, check_file, count_rows
from escrowctl.batch.plan import Batch
from escrowctl.batch.rows import RowKind
from escrowctl.batch.table import Flaw
from escrowctl.commands.batch.summary import rejects_hint
from escrowctl.config.service import Service
from escrowctl.errors import ErrorCode, Hints, bad_value, command, not_sent
from escrowctl.files import NotRegularError, open_regular
from escrowctl.journal.account import Account
from escrowctl.output.plain import safe
from escrowctl.session import Session
from escrowctl.writes.requests import account_of


@contextmanager
def checked_file(session: Session, kind: RowKind, file: str) -> Iterator[CheckedFile]:
    """Yield a checked file (`-`: stdin). Raises `BAD_VALUE` if the file cannot be read or a row has a flaw."""
    name = "standard input" if file == "-" else file
    with closing(CheckedFile(kind, session.service)) as checked:
        try:
            with _open_file(session, file) as source:
                check_file(source, checked, name=name)
        except OSError as error:
            raise bad_value(f"{name}: {error.strerror or error}.") from error
        if checked.flawed_rows:
            flaws = sorted(checked.flaws)
            print_flaws(session, flaws)
            listed = len({flaw.line for flaw in flaws})
            first_flaws = f"; the first {len(flaws)} flaws are listed" if checked.flawed_rows > listed else ""
            message = f"{name}: {checked.flawed_rows:,} of {count_rows(checked.rows_read)} cannot be sent{first_flaws}."
            raise not_sent(ErrorCode.BAD_VALUE, message, facts={"flaws": [flaw._asdict() for flaw in flaws]})
        yield checked


def print_flaws(session: Session, flaws: list[Flaw]) -> None:
    """Write each flaw as a line to stderr. Skip this with --json, because the JSON error contains the flaws."""
    if not session.options.json:
        width = len(str(flaws[-1].line))
        for flaw in flaws:
            session.console.report(safe(f"  line {flaw.line:<{width}}  {flaw.why}"))


@contextmanager
def _open_file(session: Session, file: str) -> Iterator[BinaryIO]:
    if file == "-":
        stdin = session.runtime.stdin
        # A text stream without a byte buffer has little text, so it is read at once.
        yield getattr(stdin, "buffer", None) or io.BytesIO(stdin.read().encode("utf-8", "surrogateescape"))
        return
    try:
        handle = open_regular(Path(file), os.O_RDONLY, follow=True)
    except NotRegularError as error:
        raise bad_value(f"{file} {error.strerror}.", hint="to read from a pipe: use - as the file name") from error
    with os.fdopen(handle, "rb") as source:
        yield source


def require_same_service(batch: Batch, service: Service) -> None:
    """Raise `ErrorCode.CONFLICT` if a batch was dropped, or was created for another service."""
    if batch.dropped:
        hint = rejects_hint(batch, "to send them from a new file, first save them")
        raise not_sent(ErrorCode.CONFLICT, f"{batch.name} cannot be resumed: its unsent rows were dropped.", hint=hint)
    if not batch.is_for(service):
        raise not_sent(ErrorCode.CONFLICT, f"{batch.name} was created for {batch.service}, not for {service.identity}.")


def require_same_account(batch: Batch, service: Service) -> None:
    """Raise `ErrorCode.CONFLICT` unless a batch was created by the account of `service`."""
    earlier = Account(*batch.account)
    if not account_of(service).is_same(earlier):
        drop = command(f"batch drop {batch.name}", "or, to send its file again with --skip-done")
        hint: Hints = ("use the API key that it was created with", drop)
        if earlier.name is not None:
            hint = command(f"config set account {shlex.quote(earlier.name)}", f"if both keys belong to {earlier.name}")
        message = f"{batch.name} was not created with the current API key, which may belong to another account."
        raise not_sent(ErrorCode.CONFLICT, message, hint=hint)
