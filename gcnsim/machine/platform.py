"""What the published runs of a platform add to its catalogue figures (`gcnsim.hardware.platforms`)."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Final

from gcnsim.boundary import AccessCounts
from gcnsim.cluster import LinkSpec
from gcnsim.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, Figure, Platform, platform
from gcnsim.sampling import DEGREE_SPREAD
from gcnsim.scenario import ClusterSpec

TILE: Final = 128
"""Bytes of a row that a sparse sum gathers at a time: a warp's lanes take one fp32 value each of a cache line."""

CACHE_RATE: Final = 3.0
"""Bandwidth of a GPU's second-level cache over that of its memory; 2 to 4 on the devices of the catalogue."""


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
    """The device on one workload: its sparse sums read from memory only the rows that its cache does not hold.

    Every gathered byte crosses the cache, a share 1 - h of them the memory as well:
    seconds = bytes / memory bandwidth * ((1 - h) / spmm_efficiency + 1 / CACHE_RATE). As it is without a platform.
    """
    if found is None:
        return profile
    columns = float((counts.inner_nodes + counts.boundary_nodes).mean())
    held = cached_share(found.cache.value / TILE, columns, degree_spread(dataset))
    share = 1.0 / ((1.0 - held) / found.spmm_efficiency.value + 1.0 / CACHE_RATE)
    text = f"{found.spmm_efficiency.value:.3g} of DRAM bandwidth for the {1 - held:.0%} of rows the cache does not hold"
    return replace(profile, spmm_efficiency=Figure(share, "fitted", text, found.spmm_efficiency.date), spmm_curve=None)


def streaming_share(profile: DeviceProfile, found: Platform | None) -> float:
    """Share of the memory bandwidth at which a device reads entries in order, again for every column.

    As fitted, else that of any stream.
    """
    fitted = None if found is None else found.stream_efficiency
    return profile.elementwise_efficiency.value if fitted is None else fitted.value


def cached_share(rows: float, columns: float, spread: float) -> float:
    """Share of gathered rows that a cache of `rows` rows holds: those of the columns of highest degree.

    Degrees are lognormal with the spread `spread` of their log: a share c of the columns, the highest, has the share
    Phi(spread - z) of all entries, with z the normal quantile of 1 - c.
    """
    if rows >= columns:
        return 1.0
    normal = NormalDist()
    return normal.cdf(spread - normal.inv_cdf(1.0 - rows / columns))


def degree_spread(dataset: str | None) -> float:
    """Standard deviation of the log of a dataset's degrees, by its surrogate."""
    from gcnsim.graph.generate import surrogate_facts, surrogates

    return surrogate_facts(dataset).model.degree_spread if dataset in surrogates() else DEGREE_SPREAD


def staging_of(found: Platform | None) -> LinkSpec | None:
    """What the host side of one worker moves; None where nothing was fitted."""
    fitted = None if found is None else found.staging_bandwidth
    return None if fitted is None else LinkSpec(fitted.value)


def copies_within(pcie: LinkSpec, found: Platform | None) -> LinkSpec:
    """The link between a GPU and its host: no faster, either way, than the host side takes bytes or gives them.

    Assumption: copies go through pageable memory, which the same threads of the host read and write.
    """
    fitted = None if found is None else found.staging_bandwidth
    return pcie if fitted is None else replace(pcie, capacity=min(pcie.capacity, fitted.value / 2))
