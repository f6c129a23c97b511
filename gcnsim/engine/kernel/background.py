"""`python -m gcnsim.engine.kernel.background`: compile the kernel in the background."""

from __future__ import annotations

import os
import sys

from gcnsim.engine.kernel.store import make

if __name__ == "__main__":
    os.nice(19)
    sys.exit(0 if make(wait=False) is None else 1)
