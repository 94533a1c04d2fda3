"""Open the inputs of a batch command: the file of rows, checked completely, and the lock of the batch."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from escrowctl.batch.check import CheckedFile, FlawedFileError, check_file, count_rows
from escrowctl.batch.plan import Batch
from escrowctl.batch.rows import RowKind
from escrowctl.errors import ErrorCode, bad_value, command, not_sent
from escrowctl.files import NotRegularError, open_regular
from escrowctl.output.plain import safe
from escrowctl.session import Session


@contextmanager
def checked_file(session: Session, kind: RowKind, file: str) -> Iterator[CheckedFile]:
    """Yield a file's rows. Raises EscrowctlError `BAD_VALUE`, which lists the flawed lines."""
    name = "standard input" if file == "-" else file
    try:
        with _opened(session, file) as source:
            checked = check_file(source, kind, session.service, name=name)
    except FlawedFileError as error:
        if not session.options.json:
            width = len(str(error.flaws[-1].line))
            for flaw in error.flaws:
                session.console.report(safe(f"  line {flaw.line:<{width}}  {flaw.why}"))
        flawed = f"{error.flawed:,} of {count_rows(error.rows)}"
        raise not_sent(
            ErrorCode.BAD_VALUE,
            f"{name}: {flawed} cannot be sent; the first {len(error.flaws)} flaws are listed."
            if error.flawed > len({flaw.line for flaw in error.flaws})
            else f"{name}: {flawed} cannot be sent.",
            facts={"flaws": [flaw._asdict() for flaw in error.flaws]},
        ) from error
    except OSError as error:
        raise bad_value(f"{name}: {error.strerror or error}.") from error
    try:
        yield checked
    finally:
        checked.close()


@contextmanager
def _opened(session: Session, file: str) -> Iterator[BinaryIO]:
    if file == "-":
        stdin = session.runtime.stdin
        # A text stream without a byte buffer: its content is small.
        yield getattr(stdin, "buffer", None) or io.BytesIO(stdin.read().encode("utf-8", "surrogateescape"))
        return
    try:
        handle = open_regular(Path(file), os.O_RDONLY, follow=True)
    except NotRegularError as error:
        raise bad_value(f"{file} {error.strerror}.", hint="to read from a pipe: use - as the file name") from error
    with os.fdopen(handle, "rb") as source:
        yield source


@contextmanager
def running_alone(session: Session, lock: str, find: Callable[[], Batch | None]) -> Iterator[Batch | None]:
    """Hold a batch's lock. Yield the batch as read under the lock, or None if there is none yet.

    Raises EscrowctlError `ErrorCode.BUSY` at once if another process runs it.
    """
    if not session.journal.locks.hold(lock):
        batch = find()
        name = batch.name if batch is not None else "this file"
        raise not_sent(
            ErrorCode.BUSY,
            f"another process is running {name} now.",
            hint=command(f"batch show {batch.name}" if batch is not None else "batch list", "to see how far it is"),
        )
    try:
        yield find()
    finally:
        session.journal.locks.free(lock)
