"""The profiles that come with the package, and what lies between their numbers of parts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from gcnsim.errors import ScenarioError
from gcnsim.trace.profile_files import read_profile
from gcnsim.trace.resizing import between, means_of, resized
from gcnsim.trace.stored_profile import StoredProfile

FOLDER: Final = Path(__file__).resolve().parent.parent / "data" / "profiles"
"""Where they lie: DATASET-PARTS.profile."""


@cache
def shipped_parts(dataset: str) -> tuple[int, ...]:
    """The numbers of parts at which `dataset` has a shipped profile, ascending."""
    names = (path.stem.removeprefix(f"{dataset}-") for path in FOLDER.glob(f"{dataset}-*.profile"))
    return tuple(sorted(int(name) for name in names if name.isdecimal()))


@cache
def shipped_profile(dataset: str, parts: int) -> StoredProfile:
    """The shipped profile of `dataset` at `parts`. Raises ScenarioError when there is none, FileError for a bad one."""
    known = shipped_parts(dataset)
    if parts not in known:
        there = f"there are {', '.join(map(str, known))}" if known else "it has none at any number of parts"
        raise ScenarioError(f"gpus: {dataset} has no profile at {parts} parts; {there}")
    return read_profile(FOLDER / f"{dataset}-{parts}.profile")


def profiled_parts(dataset: str) -> range:
    """The numbers of parts at which `profile_at` answers: from the least to the most shipped or outlined, or none."""
    known = shipped_parts(dataset) or _outlined_parts(dataset)
    return range(known[0], known[-1] + 1) if known else range(0)


@cache
def profile_at(dataset: str, parts: int) -> tuple[StoredProfile, str]:
    """The profile of `dataset` at `parts`, and a note on where it comes from.

    Between shipped numbers of parts the means follow a power law through the two neighbours, the shape is that of the
    nearer one, and the note states the error. Of a dataset that has an outline it is made from that. Raises
    ScenarioError outside `profiled_parts`.
    """
    known = shipped_parts(dataset)
    answered = profiled_parts(dataset)
    if parts in known:
        return shipped_profile(dataset, parts), f"profile at {parts} METIS partitions"
    if parts not in answered:
        there = f"there are {answered[0]} to {answered[-1]}" if answered else "it has none at any number of parts"
        raise ScenarioError(f"gpus: {dataset} has no profile at {parts} parts; {there}")
    if not known:
        return _outlined(dataset, parts), "by assumption"
    low, high = _neighbours(known, parts)
    error = left_out_error(dataset)
    stated = "unknown error" if error is None else f"leave-one-out error {100 * error:.0f} %"
    note = f"interpolated between profiles at {low} and {high} partitions ({stated})"
    return _interpolated(dataset, low, high, parts), note


def profile_without(dataset: str, parts: int) -> StoredProfile | None:
    """What stands for the shipped profile at `parts` where it is left out; None for the first and the last."""
    known = shipped_parts(dataset)
    if parts in (known[0], known[-1]):
        return None
    return _interpolated(dataset, *_neighbours(known, parts), parts)


@cache
def left_out_error(dataset: str) -> float | None:
    """The largest error in boundary nodes or cross entries at a shipped number of parts that its neighbours stand for.

    None where fewer than three are shipped.
    """
    known = [(count, means_of(shipped_profile(dataset, count))) for count in shipped_parts(dataset)]
    missed = [
        between(below, above, count).misses(means)
        for below, (count, means), above in zip(known, known[1:], known[2:], strict=False)
    ]
    return max(missed) if missed else None


def _neighbours(known: tuple[int, ...], parts: int) -> tuple[int, int]:
    """The shipped numbers next below and above `parts`."""
    return max(count for count in known if count < parts), min(count for count in known if count > parts)


def _interpolated(dataset: str, low: int, high: int, parts: int) -> StoredProfile:
    ends = [(count, means_of(shipped_profile(dataset, count))) for count in (low, high)]
    nearer = low if parts * parts < low * high else high
    return resized(shipped_profile(dataset, nearer), parts, between(ends[0], ends[1], parts))


def _outlined_parts(dataset: str) -> tuple[int, ...]:
    """The numbers of parts of the dataset's outline, none where it has no outline."""
    # The generators are imported for these few datasets only: most answers have no need of them.
    from gcnsim.graph.generate import outline, outlines

    return outline(dataset).parts if dataset in outlines() else ()


def _outlined(dataset: str, parts: int) -> StoredProfile:
    from gcnsim.graph.generate import outline
    from gcnsim.trace.outlined import outlined

    return outlined(outline(dataset), parts)
