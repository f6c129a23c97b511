"""Names for results that nobody chose a name for: none that is taken, since what was measured is not made again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path


def free_path(path: Path, taken: Callable[[Path], bool]) -> Path:
    """`path`, or with a number after its stem (`run-2`, `profile-2.json`) the first path that is not taken."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not taken(path) else next(each for each in numbered if not taken(each))
