"""Blocks that a command frees are written again without page faults, and the user's own settings are left alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from gcnsim.core.allocation import ALLOCATION, BLOCK, keep_freed_blocks

_FAULTS = """
import resource, sys
import numpy as np
from gcnsim.core.allocation import BLOCK, keep_freed_blocks
assert keep_freed_blocks()
def write(size):
    np.empty(size, np.uint8).fill(1)
write(BLOCK // 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    write(BLOCK // 2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 100 * (BLOCK // 2) // 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_blocks_that_are_freed_are_written_again_without_page_faults() -> None:
    # Allocation as the system has it, and no huge pages, of which one fault brings 512 pages.
    plain = {name: value for name, value in os.environ.items() if name not in ALLOCATION}
    environment = plain | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run([sys.executable, "-c", _FAULTS], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < PAGES / 100


@pytest.mark.parametrize("name", ALLOCATION)
def test_what_the_user_says_of_allocation_stands(name: str) -> None:
    assert not keep_freed_blocks({name: "1"})
