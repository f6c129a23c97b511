"""`python -m runtime.measure` at the smallest sizes of links: for tests, which look at names, not at figures."""

from __future__ import annotations

import sys

import runtime.measure
from runtime.microbench import TINY

if __name__ == "__main__":
    setattr(runtime.measure, "FULL", TINY)  # noqa: B010 - a constant of the command
    sys.exit(runtime.measure.main(sys.argv[1:]))
