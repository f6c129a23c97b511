"""Named random streams of one seed: every draw says what it is for, so adding a draw never shifts another.

The same seed and names give the same numbers on every machine and in any number of processes.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of the stream `names` under `seed` (Philox, keyed by SHA-256 of seed and names).

    >>> int(stream(0, "trace", 3).integers(1000)) == int(stream(0, "trace", 3).integers(1000))
    True
    """
    label = "\x1f".join([str(int(seed)), *(f"{type(name).__name__}:{name}" for name in names)])
    key = np.frombuffer(hashlib.sha256(label.encode()).digest()[:16], dtype="<u8")
    return np.random.Generator(np.random.Philox(key=key))
