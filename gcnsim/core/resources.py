"""The cores and memory that this process may use, and the freed memory that it keeps.

A container's CPU limit is a quota of its control group, not a set of cores, so the affinity does not show it. Control
groups nest, and each one from the process up to the root limits it. Both versions are read, also if both are mounted.

What a command computes with NumPy are arrays of a moment, again and again. By default glibc returns blocks of some
hundred kilobytes to the system when they are freed, and takes new ones an instant later, whose pages the system zeroes
one by one.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
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


SYSTEM: Final = Path("/")
ESCAPED: Final = re.compile(r"\\([0-7]{3})")
"""Escaped characters, such as spaces, in a path of `mountinfo`."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The usable resources. cores: whole ones, at least 1. quota: CPU time that control groups allow, in cores; None
    without a limit. memory_bytes: None if the system does not say.
    """

    cores: int
    quota: float | None
    memory_bytes: int | None


def usable_resources(system: Path = SYSTEM) -> Resources:
    """The resources of this process; system: the folder that contains `/proc` and `/sys`."""
    groups = list(_groups(system))
    quota = min(filter(None, (_quota(folder) for folder in groups)), default=None)
    limits = [limit for folder in groups if (limit := _memory_limit(folder)) is not None]
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = allowed if quota is None else max(1, min(allowed, int(quota)))
    return Resources(cores, quota, min(filter(None, [_physical_bytes(), *limits]), default=None))


def _physical_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _groups(system: Path) -> Iterator[Path]:
    """Folders of the control groups that limit this process's CPU time or memory, each with those above it."""
    own = dict(_own_paths(system))
    for controllers, root, mounted in _mounts(system):
        path = next((own[name] for name in controllers if name in own), None)
        if path is None:
            continue
        # A container sees its own group as the mounted root, independent of its path outside.
        inside = PurePosixPath(path)
        steps = inside.relative_to(root).parts if inside.is_relative_to(root) else ()
        if ".." in steps:
            steps = ()
        for count in range(len(steps), -1, -1):
            yield system.joinpath(mounted.lstrip("/"), *steps[:count])


def _own_paths(system: Path) -> Iterator[tuple[str, str]]:
    """Controllers and the path of this process's group among theirs; version 2 is the controller with an empty name."""
    for line in _lines(system / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path.startswith("/"):
            yield from ((name, path) for name in controllers.split(",") if name or number == "0")


def _mounts(system: Path) -> Iterator[tuple[list[str], str, str]]:
    """Each mounted hierarchy: its relevant controllers, the group at its root and its mount point."""
    for line in _lines(system / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        place, source = before.split(" "), after.split(" ")
        if len(place) < 5 or len(source) < 3:
            continue
        root, mounted = (ESCAPED.sub(lambda match: chr(int(match[1], 8)), text) for text in place[3:5])
        if source[0] == "cgroup2":
            yield [""], root, mounted
        elif source[0] == "cgroup":
            yield [name for name in ("cpu", "memory") if name in source[2].split(",")], root, mounted


def _quota(folder: Path) -> float | None:
    """The CPU time that a group allows, in cores; None without a limit."""
    words = [word for line in _lines(folder / "cpu.max") for word in line.split()]
    words = words or [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
    quota, period = (_number(word) for word in words) if len(words) == 2 else (None, None)
    return quota / period if quota and period else None


def _memory_limit(folder: Path) -> int | None:
    """The memory limit of a group in bytes; None without one."""
    lines = _lines(folder / "memory.max") or _lines(folder / "memory.limit_in_bytes")
    return _number(lines[0]) if lines else None


def _number(word: str) -> int | None:
    """A positive whole number; None for `max`, -1 and other texts that mean no limit."""
    return (int(word) or None) if word.isascii() and word.isdigit() and len(word) < 20 else None


def _lines(path: Path) -> list[str]:
    """The non-empty lines of a file; empty if it is unreadable."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]
