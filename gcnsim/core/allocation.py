"""Freed memory that a process keeps: what a command computes with NumPy are arrays of a moment, again and again.

By default glibc returns blocks of some hundred kilobytes to the system when they are freed, and takes new ones an
instant later, whose pages the system zeroes one by one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Final

ALLOCATION: Final = (
    "GLIBC_TUNABLES",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
)
"""Variables with which a user configures memory allocation; if one is set, nothing is changed."""

BLOCK: Final = 1 << 20
"""Bytes of the largest blocks that are kept: 1 MiB. Keeping larger ones took an eighth more memory."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed_blocks(environment: Mapping[str, str] = os.environ) -> bool:
    """Let this process keep up to twice `BLOCK` of freed memory at the end of its heap (glibc's mallopt(3)).

    Returns False, and changes nothing, if a variable of ALLOCATION is set or there is no glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name in environment for name in ALLOCATION):
        return False
    return all(mallopt(*item) for item in ((_MMAP_THRESHOLD, BLOCK), (_TRIM_THRESHOLD, 2 * BLOCK)))
