"""The entry point of `python -m runtime.survey`."""

from __future__ import annotations

import sys

from gcnsim.core.terminal import screened
from runtime.cli.survey import main

if __name__ == "__main__":
    with screened():
        sys.exit(main(sys.argv[1:]))
