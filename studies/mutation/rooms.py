"""Rooms of the house, found by their folders: their sources, the tests that stand where they stand, and a sample.

A room is a folder of gcnsim/ or runtime/ with all below it; its tests are the folder of that name below tests/. The
modules beside those folders are one room: its tests are the files beside the folders of tests, those named after a
module wherever they stand, and, for a module after which none is named, those that import from it.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import defaultdict
from pathlib import Path

from studies.mutation.kinds import KINDS, Mutation, mutations

PACKAGES = ("gcnsim", "runtime")
LEAST = 3
"""Mutants of every room that has so many places."""


def room_of(path: str) -> str:
    """`gcnsim/cost/device.py` belongs to `gcnsim/cost`, `gcnsim/__main__.py` to `gcnsim`."""
    return "/".join(Path(path).parts[:2]) if len(Path(path).parts) > 2 else Path(path).parts[0]


def sources(root: Path) -> dict[str, list[str]]:
    """Rooms, and the files of each, relative to `root`."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            rooms[room_of(path)].append(path)
    return dict(rooms)


def room_tests(root: Path, room: str) -> list[str]:
    """The test files of a room, relative to `root`."""
    folder = root / "tests" / room
    every = sorted(folder.rglob("test_*.py"))
    found = set(every if "/" in room else folder.glob("test_*.py"))
    for path in [] if "/" in room else sources(root).get(room, []):
        named = [file for file in every if file.stem == f"test_{Path(path).stem}"]
        module = path.removesuffix(".py").replace("/", ".")
        found |= {*named} if named else {file for file in every if f"from {module} " in file.read_text("utf-8")}
    return sorted(file.relative_to(root).as_posix() for file in found)


def digest(root: Path, room: str) -> str:
    """Changes with the room's sources and with its tests."""
    names = sources(root).get(room, []) + room_tests(root, room)
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in names)).hexdigest()


def places(root: Path) -> dict[str, list[Mutation]]:
    """Every mutation of every room that has one."""
    every = {
        room: [mutation for path in files for mutation in mutations(path, (root / path).read_bytes())]
        for room, files in sources(root).items()
    }
    return {room: found for room, found in every.items() if found}


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """How many of `count` each room gets: LEAST each, the rest as their sizes are (largest remainders)."""
    given = {room: min(LEAST, size) for room, size in sizes.items()}
    rest = max(0, count - sum(given.values()))
    exact = {room: rest * size / sum(sizes.values()) for room, size in sizes.items()}
    given = {room: min(given[room] + int(exact[room]), sizes[room]) for room in sizes}
    for room in sorted(sizes, key=lambda name: int(exact[name]) - exact[name]):
        if sum(given.values()) < count and given[room] < sizes[room]:
            given[room] += 1
    return given


def sample(every: dict[str, list[Mutation]], count: int, seed: int) -> list[Mutation]:
    """About `count` mutations: of each room its share, of each of its kinds alike many, drawn by `seed`."""
    given = shares({room: len(found) for room, found in every.items()}, count)
    drawn: list[Mutation] = []
    for room, found in sorted(every.items()):
        generator = random.Random(f"{seed} {room}")
        shuffled = [_shuffled([item for item in found if item.kind == kind], generator) for kind in KINDS]
        generator.shuffle(shuffled)
        turns = (item for turn in itertools.zip_longest(*shuffled) for item in turn if item is not None)
        drawn += itertools.islice(turns, given[room])
    return drawn


def _shuffled(found: list[Mutation], generator: random.Random) -> list[Mutation]:
    return generator.sample(found, len(found))
