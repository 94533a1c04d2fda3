"""escrowctl with leases of so many seconds: `stopping_program.py SECONDS METHOD VARIANT WORDS`.

It stops itself before it first calls the method, and is broken as the variant says ("": neither).
"""

import pkgutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any


def stop_before(path: str) -> None:
    owner, _, name = path.rpartition(".")
    holder, method = pkgutil.resolve_name(owner), pkgutil.resolve_name(path)

    def stop(*values: Any, **keywords: Any) -> Any:
        setattr(holder, name, method)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return method(*values, **keywords)

    setattr(holder, name, stop)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    seconds, method, variant, *words = sys.argv[1:]
    pkgutil.resolve_name("internals.shorten_leases")(int(seconds))
    if method:
        stop_before(method)
    if variant:
        pkgutil.resolve_name("faults.variants.apply")(variant)
    sys.exit(pkgutil.resolve_name("escrowctl.main.main")(words))
