"""`python -m escrowctl`."""

import sys

from escrowctl.main import main

sys.exit(main())
