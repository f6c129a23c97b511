"""`python -m gcnsim`: the same as the `gcnsim` command."""

from __future__ import annotations

import sys

from gcnsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
