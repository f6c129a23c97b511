"""What the published runs of a platform add to its catalogue figures (`gcnsim.hardware.platforms`)."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from gcnsim.boundary import AccessCounts
from gcnsim.cluster import LinkSpec
from gcnsim.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, Figure, Platform, platform
from gcnsim.machine.profiles import Profiles
from gcnsim.sampling import DEGREE_SPREAD
from gcnsim.scenario import ClusterSpec

TILE: Final = 128
"""Bytes of a row that a sparse sum gathers at a time: a warp's lanes take one fp32 value each of a cache line."""


def platform_of(spec: ClusterSpec) -> Platform | None:
    """The platform that a cluster names, if it names one. Raises ScenarioError when it is of another device."""
    if spec.platform is None:
        return None
    found = platform(spec.platform)
    if found.device != spec.device:
        raise ScenarioError(f"cluster.platform: {spec.platform} is of {found.device}, cluster.device is {spec.device}")
    return found


def with_l2_cache(
    profile: DeviceProfile, found: Platform | None, dataset: str | None, counts: AccessCounts
) -> DeviceProfile:
    """The device on one workload: its sparse sums read from memory only the rows that its last cache does not hold.

    Every gathered byte crosses the cache, a share 1 - h of them the memory as well:
    seconds = bytes / memory bandwidth * ((1 - h) / spmm_efficiency + 1 / cache_rate). So the share of the memory
    bandwidth that all bytes together reach may be above 1. As it is where the cache is not known, or
    holds no row.
    """
    if profile.l2_cache is None or profile.cache_rate is None or np.min(profile.l2_cache.value) < TILE:
        return profile
    columns = float((counts.inner_nodes + counts.boundary_nodes).mean())
    if counts.batches is not None:
        columns = float(counts.batches.levels[..., 0].mean())
    gathering = profile.spmm_efficiency if found is None else found.spmm_efficiency
    missed = 1.0 - cached_share(profile.l2_cache.value / TILE, max(columns, 1.0), degree_spread(dataset))
    share = 1.0 / (missed / gathering.value + 1.0 / profile.cache_rate.value)
    text = f"{1 - np.mean(missed):.0%} of the rows from the cache, the others at {gathering.reference}"
    return replace(profile, spmm_efficiency=Figure(share, gathering.source, text, gathering.date), spmm_curve=None)


def streaming_share(profile: DeviceProfile, found: Platform | None) -> float:
    """Share of the memory bandwidth at which a device reads entries in order, again for every column.

    As fitted, else that of any stream.
    """
    fitted = None if found is None else found.stream_efficiency
    return profile.elementwise_efficiency.value if fitted is None else fitted.value


def cached_share(rows: Any, columns: float, spread: float) -> Any:
    """Share of gathered rows that a cache of `rows` rows holds: those of the columns of highest degree.

    Degrees are lognormal with the spread `spread` of their log: a share c of the columns, the highest, has the share
    Phi(spread - z) of all entries, with z the normal quantile of 1 - c. An array of sizes (an assumed size, once for
    each draw) gives an array of shares.
    """
    if isinstance(rows, np.ndarray):
        return np.array([cached_share(float(one), columns, spread) for one in rows])
    if rows >= columns:
        return 1.0
    normal = NormalDist()
    return normal.cdf(spread - normal.inv_cdf(1.0 - rows / columns))


def degree_spread(dataset: str | None) -> float:
    """Standard deviation of the log of a dataset's degrees, by its surrogate."""
    from gcnsim.graph.generate import surrogate_facts, surrogates

    return surrogate_facts(dataset).model.degree_spread if dataset in surrogates() else DEGREE_SPREAD


def staging_of(figures: Profiles, found: Platform | None) -> LinkSpec | None:
    """What the host side of one worker moves, as fitted to a platform, else as the host has it; None where rows pass
    from GPU to GPU, and on CPU cores."""
    fitted = None if found is None else found.staging_bandwidth
    if fitted is not None:
        return LinkSpec(fitted.value)
    # A calibration fits what copies between a GPU and its host take, whatever limits them.
    measured = found is not None or figures.calibration is not None
    staged = figures.kind == "gpu" and not figures.between.direct and not measured
    return LinkSpec(figures.host.staging_bandwidth.value) if staged else None


def copies_within(pcie: LinkSpec, staging: LinkSpec | None) -> LinkSpec:
    """The link between a GPU and its host: no faster, either way, than the host side takes bytes or gives them.

    Assumption: copies go through pageable memory, which the same threads of the host read and write.
    """
    return pcie if staging is None else replace(pcie, capacity=min(pcie.capacity, staging.capacity / 2))
