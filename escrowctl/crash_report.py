"""Crash reports: private files that name the lines of code at which escrowctl failed.

An operator may send a report to the developers. So it contains no values: no exception messages, no arguments of the
command line, no part of a request or a reply. All names in it come from the source of escrowctl and its packages.
"""

import contextlib
import json
import os
import platform
import sys
from datetime import datetime
from pathlib import Path
from traceback import walk_tb

from escrowctl import __version__
from escrowctl.errors import EscrowctlError
from escrowctl.files import create_file, make_private_folder
from escrowctl.runtime import timestamp

_MAX_REPORTS = 20
_MAX_FRAMES = 50


def write_crash_report(folder: Path, command: str, error: BaseException, *, now: datetime) -> Path | None:
    """Write a report on `error` into `folder`/crashes. Return its path, or None if it cannot be written.

    `command` is the command as far as it was recognised, such as `escrowctl tx get`.
    """
    moment = timestamp(now)
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    report = {
        "escrowctl": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "at": moment,
        "command": command,
        "exceptions": [
            {
                "type": f"{type(one).__module__}.{type(one).__qualname__}",
                # The outermost frame is the first.
                "frames": [
                    f"{frame.f_globals.get('__name__')}:{line} {frame.f_code.co_qualname}"
                    for frame, line in [*walk_tb(one.__traceback__)][-_MAX_FRAMES:]
                ],
            }
            for one in chain
        ],
    }
    path = folder / "crashes" / f"{moment.replace(':', '')}-{os.getpid()}.json"
    with contextlib.suppress(OSError, EscrowctlError):
        make_private_folder(path.parent)
        with os.fdopen(create_file(path), "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
        for oldest in sorted(path.parent.glob("*.json"))[:-_MAX_REPORTS]:
            oldest.unlink(missing_ok=True)
        return path
    return None
