"""`python -m runtime.measure` at the smallest sizes of links: for tests, which look at names, not at figures."""

from __future__ import annotations

import sys

import runtime.cli.measure
from runtime.microbench import TINY

if __name__ == "__main__":
    setattr(runtime.cli.measure, "FULL", TINY)  # noqa: B010 - a constant of the command
    sys.exit(runtime.cli.measure.main(sys.argv[1:]))
