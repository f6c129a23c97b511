"""Figures of the catalogue that a question (`cluster.figures`) or a joint draw of all assumptions replaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.ids import FloatArray
from gcnsim.profile import DeviceProfile, Figure, HostProfile, LinkProfile
from gcnsim.scenario import ClusterSpec

GIVEN: Final = "cluster.figures of the question"
"""In place of a reference."""

Profile = TypeVar("Profile", DeviceProfile, HostProfile, LinkProfile)


def with_given(profile: Profile, spec: ClusterSpec) -> Profile:
    """`profile` with the figures that `spec` gives for it."""
    if not spec.figures:
        return profile
    own = [(name.rpartition("."), value) for name, value in spec.figures]
    figures: dict[str, Any] = {
        field: Figure(value, "given", GIVEN, "") for (name, _, field), value in own if name == profile.name
    }
    if "spmm_efficiency" in figures:
        # One number for all sizes: a measured curve would hide it.
        figures["spmm_curve"] = None
    return replace(profile, **figures) if figures else profile


def with_drawn(profile: Profile, drawn: Mapping[str, FloatArray]) -> Profile:
    """`profile` with an array in the place of every figure of it in `drawn`: cost laws take both alike."""
    found: dict[str, Any] = {}
    for name, values in drawn.items():
        owner, _, field = name.rpartition(".")
        if owner == profile.name:
            values = np.asarray(values, dtype=np.float64)
            found[field] = replace(getattr(profile, field), value=values)
    return replace(profile, **found) if found else profile
