"""Memory of tensors that is freed stays with the process, so that the next iteration writes into it again.

By default glibc gives blocks of many megabytes back to the system when they are freed, and takes new ones an instant
later: the system zeroes each page of these when it is first written, thousands of times in an iteration.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Final

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER: Final = -1
_PIECE: Final = 1 << 26
"""Bytes by which the heap grows."""

ALLOCATION: Final = (
    "GLIBC_TUNABLES",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
)
"""Variables by which a user says how memory is allocated; then nothing is changed."""


def keep_heap(environment: Mapping[str, str] = os.environ) -> bool:
    """Have this process keep the memory that it frees, and take large blocks from its heap (glibc's mallopt(3)).

    To be called once everything is loaded, since what was freed before has then gone back to the system. Gives False,
    and changes nothing, where a variable of ALLOCATION is set or there is no glibc.
    """
    if any(name in environment for name in ALLOCATION):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*each) for each in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PIECE)))
