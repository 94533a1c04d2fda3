"""Check the file of a batch command, find a batch by its name, and hold the lock of a batch."""

import io
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from escrowctl.batch.check import CheckedFile, check_file, count_rows
from escrowctl.batch.plan import Batch, find_batch
from escrowctl.batch.rows import RowKind
from escrowctl.batch.table import Flaw
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command, not_sent
from escrowctl.files import NotRegularError, open_regular
from escrowctl.journal.journal import Journal
from escrowctl.output.plain import safe
from escrowctl.session import Session


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
            raise not_sent(
                ErrorCode.BAD_VALUE,
                f"{name}: {checked.flawed_rows:,} of {count_rows(checked.rows_read)} cannot be sent{first_flaws}.",
                facts={"flaws": [flaw._asdict() for flaw in flaws]},
            )
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


def require_batch(journal: Journal, name: str) -> Batch:
    """Return the batch `name`. Raises EscrowctlError `ErrorCode.NOT_FOUND`, with a hint to list the batches."""
    try:
        return find_batch(journal, name)
    except EscrowctlError as error:
        error.hints = (*error.hints, command("batch list", "to see the batches in this journal"))
        raise


@contextmanager
def hold_batch_lock(session: Session, lock: str, subject: str) -> Iterator[None]:
    """Hold a batch's lock. Raises `BUSY` if another process holds it. `subject` names the batch in the message."""
    if not session.journal.locks.hold(lock):
        raise not_sent(
            ErrorCode.BUSY,
            f"another process is working on {subject} now.",
            hint=command("batch list", "to see its progress"),
        )
    try:
        yield
    finally:
        session.journal.locks.free(lock)
