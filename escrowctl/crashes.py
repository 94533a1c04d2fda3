"""Crash reports: where a defect of escrowctl showed itself, by allow-list, in a file for its owner alone.

A report is made to be sent to somebody. So it holds no value: no message of an exception, no
argument of the line, nothing of a request or a reply; only names that stand in escrowctl's own
source and in its packages, and the words and options that the command tree knows.
"""

import contextlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType

from escrowctl import __version__
from escrowctl.config.folders import make_private_folder
from escrowctl.errors import EscrowctlError
from escrowctl.surroundings import timestamp

_MOST_KEPT = 20
_MOST_FRAMES = 50


def write_crash_report(
    folder: Path, words: Sequence[str], error: BaseException, *, known: frozenset[str], at: datetime
) -> Path | None:
    """Write a report into `folder`/crashes and return its path; None where that cannot be done.

    `words` is the line as typed; of it only what is among `known` (commands and options) is kept.
    """
    moment = timestamp(at)
    path = folder / "crashes" / f"{moment.replace(':', '')}-{os.getpid()}.json"
    with contextlib.suppress(OSError, EscrowctlError):
        make_private_folder(path.parent)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o600)
            json.dump(describe_crash(words, error, known=known, moment=moment), file, indent=2)
            file.write("\n")
        _remove_oldest(path.parent)
        return path
    return None


def describe_crash(
    words: Sequence[str], error: BaseException, *, known: frozenset[str], moment: str
) -> dict[str, object]:
    """Return what a report says."""
    return {
        "escrowctl": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "at": moment,
        "line": [name for word in words if (name := word.partition("=")[0]) in known],
        "exceptions": [
            {"type": f"{type(one).__module__}.{type(one).__qualname__}", "frames": _frames(one.__traceback__)}
            for one in _chain(error)
        ],
    }


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _frames(traceback: TracebackType | None) -> list[str]:
    """Return `file:line function` from the outermost frame on; files below their package, not where they lie here."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append(f"{_place(code.co_filename)}:{traceback.tb_lineno} {code.co_qualname}")
        traceback = traceback.tb_next
    return found[-_MOST_FRAMES:]


def _place(filename: str) -> str:
    parts = Path(filename).parts
    for package in ("site-packages", "escrowctl"):
        if package in parts:
            at = len(parts) - 1 - parts[::-1].index(package)
            return "/".join(parts[at + (package == "site-packages") :])
    return parts[-1] if parts else "?"


def _remove_oldest(folder: Path) -> None:
    for path in sorted(folder.glob("*.json"))[:-_MOST_KEPT]:
        path.unlink(missing_ok=True)
