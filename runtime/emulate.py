"""The door of `python -m runtime.emulate`."""

from __future__ import annotations

import sys

from gcnsim.terminal.screen import screened
from runtime.cli.interrupts import interrupt_again, leave_quietly

if __name__ == "__main__":
    # The imports below take their time.
    leave_quietly("runtime.emulate")
    from runtime.cli.emulate import main

    interrupt_again()
    with screened():
        sys.exit(main(sys.argv[1:]))
