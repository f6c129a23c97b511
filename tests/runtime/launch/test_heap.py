"""Memory that is freed stays with a process that asked for it, and the user's own settings are left alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gcnsim.core.allocation import ALLOCATION
from runtime.launch.worker import disable_malloc_trim

_FAULTS = """
import resource, sys
import numpy as np
from runtime.launch import disable_malloc_trim
kept = sys.argv[1] == "kept" and disable_malloc_trim()
assert kept == (sys.argv[1] == "kept")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def write(size):
    np.empty(size, np.uint8).fill(1)
write(48 << 20)
before = faults()
for _ in range(10):
    write(48 << 20)
print(faults() - before)
"""
PAGES = 10 * (48 << 20) // 4096


def _faults(how: str) -> int:
    # Allocation as the system has it, and no huge pages, of which one fault brings 512 pages.
    plain = {name: value for name, value in os.environ.items() if name not in ALLOCATION}
    words = [sys.executable, "-c", _FAULTS, how]
    environment = plain | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_memory_that_is_freed_is_written_again_without_page_faults() -> None:
    assert _faults("kept") < PAGES / 100


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="without glibc nothing is changed")
def test_without_it_every_page_is_new_each_time() -> None:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if path.is_file() and "[always]" in path.read_text(encoding="ascii"):
        pytest.skip("the system gives huge pages without being asked")
    assert _faults("usual") > PAGES / 2


@pytest.mark.parametrize("name", ALLOCATION)
def test_what_the_user_says_of_allocation_stands(name: str) -> None:
    assert not disable_malloc_trim({name: "1"})
