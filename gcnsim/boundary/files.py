"""The profile file: version 1 of kind `profile`, a checksum per section (see `gcnsim.io.container`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.boundary.bins import RATES, Bins, node_type
from gcnsim.boundary.stored import SAMPLERS, SIZES, ProfileOrigin, StoredProfile
from gcnsim.errors import FileError
from gcnsim.fields import Number
from gcnsim.fields.columns import AMOUNT, COUNT, POSITIVE, SHARE, check_values
from gcnsim.ids import AnyArray, frozen
from gcnsim.io.container import Sections, kind_of, read_sections, section_of, write_sections

KIND: Final = "profile"
VERSION: Final = 1
SOURCES: Final = ("graph", "surrogate", "interpolated", "outline")
"""What a profile may come from."""

_ORIGIN_TYPES: dict[str, tuple[type, ...]] = {
    "source": (str,),
    "name": (str,),
    "graph_hash": (str,),
    "partition_method": (str,),
    "partition_seed": (int,),
    "surrogate_seed": (int, type(None)),
    "model": (dict, type(None)),
    "scale": (float, int),
    "residuals": (dict, type(None)),
    "cross_range": (list,),
}


def write_profile(path: str | Path, profile: StoredProfile) -> str:
    """Write `profile` to `path` atomically; return its content hash. Raises FileError when it cannot be written."""
    arrays: dict[str, AnyArray] = {name: getattr(profile, name) for name in SIZES}
    for sampler, cells in profile.cells.items():
        for field in fields(Bins):
            array = getattr(cells, field.name)
            arrays[f"{sampler}.{field.name}"] = array.astype(_stored(field.name))
    meta = {"origin": asdict(profile.origin), "parts": profile.parts, "rates": list(RATES)}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


def read_profile(path: str | Path) -> StoredProfile:
    """The profile at `path`, its sections consistent with one another.

    Raises FileError when the file is missing, truncated, altered, of another kind, or contradicts itself.
    """
    stored = read_sections(path, kind=KIND, version=VERSION)
    parts = stored.meta.get("parts")
    if type(parts) is not int or parts < 1:
        raise FileError(f"{path}: parts is {parts!r}; allowed: 1 or more")
    if stored.meta.get("rates") != list(RATES):
        raise FileError(f"{path}: rates are {stored.meta.get('rates')!r}, this gcnsim reads {list(RATES)}")
    sizes = {name: _section(path, stored, name, "<i8", (parts,), COUNT) for name in SIZES}
    check_values(sizes["inner_nodes"], POSITIVE, f"{path}: section 'inner_nodes'")
    profile = StoredProfile(
        origin=_origin(path, stored.meta.get("origin")),
        cells={sampler: _cells(path, stored, sampler, parts) for sampler in SAMPLERS},
        **sizes,
    )
    _check(path, profile)
    return profile


def is_profile(path: str | Path) -> bool:
    """Whether the file at `path` says that it is a profile; what is none, or not there, is not."""
    try:
        return kind_of(path) == KIND
    except FileError:
        return False


def _stored(name: str) -> str:
    return "<u4" if name == "nodes" else "<f4"


def _cells(path: str | Path, stored: Sections, sampler: str, parts: int) -> Bins:
    nodes = stored.arrays.get(f"{sampler}.nodes")
    cells = nodes.shape[2] if nodes is not None and nodes.ndim == 3 else 0
    rates = len(RATES)
    shapes = {
        "nodes": (parts, parts, cells),
        "effective": (parts, cells, rates),
        "tilt": (parts, parts, rates),
        "inner_kept": (parts, rates),
        "boundary_kept": (parts, rates),
    }
    found = {}
    for field in fields(Bins):
        shape = shapes.get(field.name, (parts, cells))
        rule = SHARE if field.name.endswith("_kept") else AMOUNT
        array = _section(path, stored, f"{sampler}.{field.name}", _stored(field.name), shape, rule)
        found[field.name] = frozen(array.astype(node_type(parts) if field.name == "nodes" else np.float64))
    return Bins(**found)


def _section(
    path: str | Path, stored: Sections, name: str, dtype: str, shape: tuple[int, ...], rule: Number = AMOUNT
) -> AnyArray:
    array = section_of(path, stored, name, dtype, len(shape), shape)
    check_values(array, rule, f"{path}: section {name!r}")
    return array


def _check(path: str | Path, profile: StoredProfile) -> None:
    """Raises FileError where the sections contradict one another."""
    for sampler, cells in profile.cells.items():
        pairs = cells.nodes.sum(axis=2)
        if not np.array_equal(pairs, profile.pairs):
            raise FileError(f"{path}: section '{sampler}.nodes' has other boundary nodes than '{SAMPLERS[0]}.nodes'")
        if pairs.diagonal().any():
            raise FileError(f"{path}: section '{sampler}.nodes' has boundary nodes that a worker itself owns")
    if (profile.boundary_nodes > profile.boundary_entries).any():
        raise FileError(f"{path}: section 'boundary_entries' has fewer cross edges than there are boundary nodes")


def _origin(path: str | Path, stored: Any) -> ProfileOrigin:
    if not isinstance(stored, Mapping) or stored.keys() != _ORIGIN_TYPES.keys():
        raise FileError(f"{path}: origin is incomplete; wanted {', '.join(_ORIGIN_TYPES)}")
    for name, types in _ORIGIN_TYPES.items():
        if type(stored[name]) not in types:
            raise FileError(f"{path}: origin.{name} is {stored[name]!r}, wanted {types[0].__name__}")
    if stored["source"] not in SOURCES:
        raise FileError(f"{path}: origin.source is {stored['source']!r}; allowed: {', '.join(SOURCES)}")
    if not 0.0 < stored["scale"] <= 1.0:
        raise FileError(f"{path}: origin.scale is {stored['scale']!r}; allowed: above 0, at most 1")
    for count, missed in (stored["residuals"] or {}).items():
        if not count.isdecimal() or type(missed) not in (float, int):
            raise FileError(f"{path}: origin.residuals has {missed!r} at {count!r}; wanted numbers by number of parts")
    ends = stored["cross_range"]
    low, high = ends if len(ends) == 2 and {type(end) for end in ends} <= {float, int} else (0.0, 0.0)
    if not 0.0 < low <= 1.0 <= high:
        raise FileError(f"{path}: origin.cross_range is {stored['cross_range']!r}, wanted a factor to 1, one from 1")
    return ProfileOrigin(**{**stored, "cross_range": (low, high)})
