"""Figures of the catalogue that are replaced: by a calibration, a question (`cluster.figures`) or a draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from gcnsim.calibration_record.record import Fitted
from gcnsim.hardware import DeviceProfile, Figure, HostProfile, LinkProfile
from gcnsim.ids import FloatArray
from gcnsim.scenario import ClusterSpec

GIVEN: Final = "cluster.figures of the question"
"""In place of a reference."""

CALIBRATED: Final = "calibration record"
"""In place of a date: the record names its inputs."""

Profile = TypeVar("Profile", DeviceProfile, HostProfile, LinkProfile)


def with_fitted(profile: Profile, fitted: Mapping[str, Fitted]) -> Profile:
    """`profile` with the figures of a calibration in the place of its own."""
    figures: dict[str, Any] = {
        name: Figure(each.value, "fitted", each.reference, CALIBRATED) for name, each in fitted.items()
    }
    return replace(profile, **figures)


def with_given(profile: Profile, spec: ClusterSpec) -> Profile:
    """`profile` with the figures that `spec` gives for it."""
    if not spec.figures:
        return profile
    own = [(name.rpartition("."), value) for name, value in spec.figures]
    figures: dict[str, Any] = {
        field: Figure(value, "given", GIVEN, "") for (name, _, field), value in own if name == profile.name
    }
    if "spmm_efficiency" in figures:
        # One number for all sizes: what was measured would hide it.
        figures["spmm_curve"] = figures["sums"] = None
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
