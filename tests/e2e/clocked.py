"""escrowctl with a clock that a test sets: the file `TEST_CLOCK` has the time, in RFC 3339."""

import os
import sys
from datetime import datetime
from pathlib import Path

from escrowctl.main import main
from escrowctl.runtime import Runtime

if __name__ == "__main__":
    clock = Path(os.environ["TEST_CLOCK"])
    sys.exit(main(sys.argv[1:], Runtime(now=lambda: datetime.fromisoformat(clock.read_text()))))
