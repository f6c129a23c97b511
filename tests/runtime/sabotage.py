"""`sabotage.py WHERE [arguments of runtime.train]`: training in which something fails on worker 1, after a while.

WHERE is `module:class.function` or `module:function` of what helper threads do.
"""

from __future__ import annotations

import itertools
import os
import sys
from importlib import import_module
from typing import Any

from runtime.train.__main__ import main

AT = 12
"""The call that fails, counted from 1."""


def spoil(where: str) -> None:
    """Replace a function by one that fails at its call number AT."""
    module, _, path = where.partition(":")
    *owner, name = path.split(".")
    holder: Any = import_module(module)
    for part in owner:
        holder = getattr(holder, part)
    real, calls = getattr(holder, name), itertools.count(1)

    def fails(*args: Any, **named: Any) -> Any:
        if next(calls) == AT:
            raise ArithmeticError(f"{name} is broken")
        return real(*args, **named)

    setattr(holder, name, fails)


if __name__ == "__main__":
    if os.environ.get("RANK") == "1":
        spoil(sys.argv[1])
    if "RANK" not in os.environ:
        from runtime.launch import launch

        sys.exit(launch(sys.argv[1:], 2, command=[sys.executable, __file__]))
    sys.exit(main(sys.argv[2:]))
