"""A core that trains: rows come from memory where an iteration touches more than the last cache has room for.

Benchmarks time a kernel on the same few buffers; in training a whole iteration lies between two uses of a row, and the
memory that a result is written to was last used as long ago. How far that is decides what a byte costs
(`gcnsim.hardware.profiles`, measured at several distances).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from gcnsim.hardware import DeviceProfile, FarFigures, Figure, HostProfile

BLUR: Final = 1.0
"""Of what lies between two uses, a factor of 2 to this power either way of the cache's size is half in it. Rows of maps
leave a cache less at once than those that sums read again: on one machine from 8 to 35 MB."""

REUSED: Final = 2.3
TRAINED_BLUR: Final = 2.0
"""An iteration frees memory and takes it again, and its layers differ: it goes that many times less far than the bytes
that it touches, less sharply. Forward maps of one worker that trains GraphSAGE and sub-graphs take 0.1, 0.2, 0.5 and
0.7 of the way from near to far where iterations touch 22, 54, 124 and 220 MB (coauthor_phy, 2 cores of an Intel Xeon).
"""

FITTED: Final = "fitted"
"""Where figures come from that a calibration found; others are not its own to change."""

RATE: Final = "_per_s"
RATES: Final = ("gather_bandwidth",)
"""Figures that are rates, beside those whose names say so."""


def far_share(cache: float, between: float) -> float:
    """Share of the rows that come from memory after `between` bytes of others; half of them after `cache` bytes."""
    return float(np.clip(0.5 + np.log2(max(between, 1.0) / cache) / (2.0 * BLUR), 0.0, 1.0))


def trained_share(cache: float, between: float) -> float:
    """Share of what an iteration reads and writes that comes from memory, where it touches `between` bytes."""
    return float(np.clip(0.5 + np.log2(max(between, 1.0) / (REUSED * cache)) / (2.0 * TRAINED_BLUR), 0.0, 1.0))


def device_in_training(device: DeviceProfile, between: float) -> DeviceProfile:
    """`device` with its maps, passes, moved rows and launches as forward passes find them where iterations touch
    `between` bytes: all that they make is kept for the backward pass, so it goes to memory that was last used an
    iteration ago. The backward pass takes the memory that it has just freed, and finds it in the caches.

    Itself where nothing is known of distances. Sums know theirs by themselves (`gcnsim.cost.sums`).
    """
    maps, far = device.maps, device.far
    if maps is None or far is None:
        return device
    share = trained_share(far.cache, between)
    added = dict.fromkeys(("read_byte", "written_byte"), share * far.byte)
    seconds = {name: value + added.get(name, 0.0) for name, value in maps.seconds.items()}
    launch = device.launch_s
    if launch.source == FITTED:
        launch = replace(launch, value=launch.value * (1.0 + share * (far.launch - 1.0)))
    return replace(
        device,
        maps=replace(maps, seconds=seconds),
        elementwise_efficiency=_slower(device.elementwise_efficiency, share, far.passes),
        gather_efficiency=_slower(device.gather_efficiency, share, far.rows),
        launch_s=launch,
        far=None,
    )


def host_in_training(host: HostProfile, far: FarFigures | None, between: float) -> HostProfile:
    """`host` with its figures of sampling, drawing and loading as they are where iterations touch `between` bytes.

    Half way from near to far at least, since they run once for all that an iteration does: measured, on a core of their
    own, 0.4 to 0.6 of the way for iterations of 7 to 220 MB. Figures that a question gives stay as they are."""
    if far is None:
        return host
    share, found = (1.0 + trained_share(far.cache, between)) / 2.0, dict[str, Any]()
    for name, value in far.host.items():
        figure: Figure | None = getattr(host, name)
        if figure is None or figure.source != FITTED:
            continue
        if name.endswith(RATE) or name in RATES:
            mixed = 1.0 / ((1.0 - share) / figure.value + share / value)
        else:
            mixed = (1.0 - share) * figure.value + share * value
        found[name] = replace(figure, value=mixed)
    return replace(host, **found)


def _slower(efficiency: Figure, share: float, factor: float) -> Figure:
    """An efficiency where so much of what is moved takes `factor` times as long; one that a question gives stays."""
    if efficiency.source != FITTED:
        return efficiency
    return replace(efficiency, value=efficiency.value / (1.0 + share * (factor - 1.0)))
