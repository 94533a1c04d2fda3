"""The seed of a run: drawn once for all its workers, printed by whoever uses it, and given to run it again."""

import os
import random
import zlib
from functools import cache


@cache
def seed_of_run() -> int:
    given = os.environ.get("ESCROWCTL_TEST_SEED")
    shared = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if given or shared is None:
        return int(given or random.SystemRandom().randrange(2**32))
    return zlib.crc32(shared.encode())


def draw_seed() -> int:
    """Return the seed, and print it: pytest shows that where a test fails."""
    print(f"ESCROWCTL_TEST_SEED={seed_of_run()}")
    return seed_of_run()
