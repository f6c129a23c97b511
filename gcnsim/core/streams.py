"""Named random streams of one seed: every draw names its purpose, so adding a draw never changes another.

The same seed and names give the same numbers on every machine and for any number of processes.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of the stream `names` under `seed` (PCG64, seeded by SHA-256 of seed and names).

    >>> int(stream(0, "trace", 3).integers(1000)) == int(stream(0, "trace", 3).integers(1000))
    True
    """
    label = "\x1f".join([str(int(seed)), *(f"{type(name).__name__}:{name}" for name in names)])
    digest = hashlib.sha256(label.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def skipped(generator: np.random.Generator, floats: int) -> np.random.Generator:
    """`generator`, fresh from `stream`, advanced by this many float32 uniforms: two use one step of PCG64.

    >>> whole = stream(0, "trace").random(5, dtype=np.float32)
    >>> bool(skipped(stream(0, "trace"), 3).random(dtype=np.float32) == whole[3])
    True
    """
    state = generator.bit_generator
    assert isinstance(state, np.random.PCG64)
    state.advance(floats // 2)
    if floats % 2:
        generator.random(dtype=np.float32)
    return generator
