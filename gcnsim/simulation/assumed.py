"""The assumed figures of a machine with their ranges, and joint draws of all of them.

Every assumed figure has a value and a range. A draw puts each figure independently at a position from -1 (the low end)
over 0 (the value) to 1 (the high end). Positions in between are geometric, or linear if an end is zero. Positions form
a Latin hypercube (McKay, Beckman and Conover, 1979). Each figure has a separate random stream, so one more assumption
never changes another. Figures of one kind share their positions over machines: an overestimate for sparse products on
one GPU is also one on the next.

Whether GPUs sold both as modules and as cards have NVLink is unknown unless given. That is no number with a range,
because the schedule differs. A share of the draws therefore uses the scenario with the other path between GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.hardware import CACHE, POWER, SITE, Figure, LinkProfile, figures_of
from gcnsim.scenario import RELEASED, ClusterSpec, Scenario
from gcnsim.scenario.machine import Machine, resolve_machine
from gcnsim.scenario.machine_profiles import NVLINK, NVLINK_THERE

NORMAL_90: Final = NormalDist().inv_cdf(0.95)
"""Standard deviations of a normal distribution on either side of its mean that hold 90 % of it."""

DRAWS: Final = 64
"""Joint draws of the assumptions: few enough to simulate; a share of them is accurate to about six points."""

UNUSED: Final = frozenset(
    {"memory", "flops_fp16", "nvlink", "nvlink_generation", *POWER}
    | {f"{name} of a host" for name in ("memory", "gpus", "nic", "nics", "nvlink", "nvlink_generation", *SITE)}
)
"""Figures of the catalogue that no cost law reads."""

ON_CORES: Final = frozenset(
    f"{name} of a host"
    for name in ("socket_bandwidth", "busy_core_rate", "slice_s", "wake_s", "reduce_step_s", "work_spread")
)
"""Figures that only workers on CPU cores need."""

OF_RELEASED: Final = frozenset({"operation_s of a host", "rebuild_bytes of a host"})
"""Figures that only the overhead of the published systems' code needs."""

OF_LEAN: Final = frozenset({"call_s of a host"})
"""Figures that only GPU workers without that overhead need."""

OF_STAGED: Final = frozenset({"memory_bandwidth of a host", "staging_bandwidth of a host"})
"""Figures that are needed only if rows between GPUs are copied through host memory."""

OF_BATCHES: Final = frozenset(
    f"{name} of a host"
    for name in (
        "gather_bandwidth",
        "build_entries_per_s",
        "memory_bandwidth",
        "neighbour_draws_per_s",
        "uva_efficiency",
        "operation_s",
        "rebuild_bytes",
    )
)
"""Figures that only mini-batches of GPUs need."""

OF_COMPUTE: Final = (
    OF_BATCHES | OF_RELEASED | OF_LEAN | frozenset({"sample_edges_per_s of a host", "sort_edges_per_s of a host"})
) - {"memory_bandwidth of a host"}
"""Host figures that measured compute times replace; they replace all device figures too."""

SOMETIMES: Final = ON_CORES | OF_BATCHES | OF_RELEASED | OF_LEAN | OF_STAGED
"""Figures that some questions need."""


def used_figures(machine: Machine, *, batches: bool = False) -> dict[str, Figure]:
    """The figures of the machine that a cost law reads, by `NAME.FIGURE`.

    batches: whether mini-batches are trained; they need more figures.
    """
    cluster, gpu, network = machine.spec, machine.device, machine.network
    links: dict[str, LinkProfile] = {item.name: item for item in (machine.copies, machine.host_memory, network)}
    staged = machine.kind == "gpu" and not machine.between.direct and machine.calibration is None
    replaced = {(network.name, "bandwidth")}
    if machine.kind == "gpu":
        replaced |= {(machine.host_memory.name, field) for field in ("bandwidth", "efficiency")}
    if cluster.latency is not None:
        replaced.add((network.name, "latency_s"))
    if machine.between.nvlink is not None:
        links[NVLINK] = machine.nvlink
        replaced |= {(NVLINK, "bandwidth")} if cluster.nvlink is not None else set()
    unequal = {device.name: device for device in machine.devices}
    links |= {copy.name: copy for copy in machine.own_copies}
    used = {}
    for name, profile in {gpu.name: gpu, **unequal, **links, machine.host.name: machine.host}.items():
        for field, figure in figures_of(profile).items():
            where = f"{field} of a host" if name == machine.host.name else field
            on_cores = machine.kind == "cpu" and where in ON_CORES
            moved = cluster.sockets == "cores" and where == "socket_bandwidth of a host"
            released = cluster.implementation == RELEASED
            calls = where in OF_RELEASED if released else where in OF_LEAN and machine.kind == "gpu" and not batches
            copied = staged and where in OF_STAGED
            loaded = machine.kind == "gpu" and batches and where in OF_BATCHES
            needed = on_cores or moved or calls or copied or loaded
            uncached = field in CACHE and (machine.kind == "cpu" or machine.calibration is not None)
            measured = machine.measured is not None and (profile is gpu or where in OF_COMPUTE)
            idle = measured or where in UNUSED or uncached or (where in SOMETIMES and not needed)
            if (name, field) not in replaced and not idle:
                used[f"{name}.{field}"] = figure
    return used


def gpus_of_a_server(machine: Machine) -> int:
    """GPUs that a server has, in use or not: its make's, else those of the largest server of the question."""
    spec, count = machine.spec, machine.host.gpus
    if count is not None and machine.host.device == spec.device and spec.devices is None:
        return max(round(count.value), spec.gpus_per_server)
    return min(spec.gpus_per_server, spec.gpus)


def power_figures(machine: Machine) -> dict[str, Figure]:
    """The figures behind the machine's power that are known and used, by `NAME.FIGURE`."""
    all_used = gpus_of_a_server(machine) * machine.spec.servers == machine.spec.gpus
    of_gpus = {
        f"{device.name}.{field}": figure
        for device in (machine.device, *machine.devices)
        for field, figure in figures_of(device).items()
        if field in POWER and not (all_used and field == "idle_power")
    }
    host = machine.host
    return of_gpus | {f"{host.name}.{field}": figure for field, figure in figures_of(host).items() if field in SITE}


def refuse_unused_figures(machines: Sequence[Machine], *, energy: bool = False) -> None:
    """Raise ScenarioError for a figure in `cluster.figures` that changes nothing on any of `machines`. energy: whether
    energy is asked for, which figures of power change alone."""
    used = {
        name: None
        for machine in machines
        for batches in (True, False)
        for name in used_figures(machine, batches=batches)
    }
    # What a server holds decides whether a setting fits, and no time.
    used |= {f"{machine.host.name}.memory": None for machine in machines if machine.kind == "gpu"}
    power = {name: None for machine in machines for name in power_figures(machine)}
    used |= power if energy else {}
    for name, _ in dict.fromkeys(pair for machine in machines for pair in machine.spec.figures):
        if name in power and not energy:
            raise ScenarioError(
                f"cluster.figures: {name} changes energy alone, which is not asked for; --electricity 0.12USD/kWh asks"
            )
        if name not in used:
            profile, _, field = name.rpartition(".")
            alike = [one for one in used if one.startswith(f"{profile}.") or one.endswith(f".{field}")]
            where = "this machine" if len({machine.spec for machine in machines}) == 1 else "any of these machines"
            raise ScenarioError(
                f"cluster.figures: {name} would change nothing on {where}; figures used: {', '.join(alike or used)}"
            )


@dataclass(frozen=True, slots=True)
class Assumption:
    """One assumed figure with its range. shared: the name of its random positions, the same on all machines."""

    name: str
    figure: Figure
    shared: str

    def at(self, position: FloatArray) -> FloatArray:
        """The figure's value at each position in [-1, 1], float64 of the same shape."""
        value, low, high = self.figure.value, self.figure.low, self.figure.high
        assert low is not None
        assert high is not None
        end = np.where(position < 0, low, high)
        far = np.abs(position)
        if min(low, value) > 0:
            return np.asarray(value * (end / value) ** far)
        return np.asarray(value + far * (end - value))


def assumptions_of(machine: Machine, *, batches: bool = False) -> tuple[Assumption, ...]:
    """The assumed figures of the machine, with ranges."""
    used = used_figures(machine, batches=batches)
    shared = dict(_shared(machine, used))
    return tuple(
        Assumption(name, figure, shared[name])
        for name, figure in used.items()
        if figure.source == "assumed" and figure.low is not None and figure.high is not None
    )


def _shared(machine: Machine, used: Mapping[str, Figure]) -> Iterator[tuple[str, str]]:
    """Per figure, its kind and its name."""
    gpus = {device.name for device in (machine.device, *machine.devices)}
    copies = {machine.copies.name, *(copy.name for copy in machine.own_copies)}
    for name in used:
        profile, _, field = name.rpartition(".")
        kind = (
            "device"
            if profile in gpus
            else "host"
            if profile == machine.host.name
            else "copies"
            if profile in copies
            else "network"
            if profile == machine.network.name
            else profile
        )
        yield name, f"{kind}.{field}"


@cache
def position(name: str, seed: int, draws: int = DRAWS) -> FloatArray:
    """The position of the assumption `name` in each joint draw: float64[draws] in (-1, 1), read-only.

    The positions are the middles of equal strata, each once.
    """
    positions = (2.0 * stream(seed, "assumptions", name).permutation(draws) + 1.0) / draws - 1.0
    positions.setflags(write=False)
    return np.asarray(positions)


@cache
def normal_position(name: str, seed: int, draws: int = DRAWS) -> FloatArray:
    """The same as `position` for a 90 % interval instead of a range: normally distributed, read-only.

    The result is float64[draws]; -1 and 1 are the ends of the interval.
    """
    quantiles = [NormalDist().inv_cdf((1.0 + item) / 2.0) for item in position(name, seed, draws)]
    positions = np.array(quantiles) / NORMAL_90
    positions.setflags(write=False)
    return positions


OTHERWISE: Final = 0.25
"""The share of the draws with the other path.

Assumed: most GPUs that are sold as modules too are modules in servers of several. With a quarter, a 90 % interval
includes the other path.
"""


@dataclass(frozen=True, slots=True)
class OtherPath:
    """An alternative to an assumed path between GPUs. name: the open fact. value: the assumed and the alternative
    value, in a word each. basis: why the value is assumed. scenario: the question with the other path.
    """

    name: str
    value: str
    otherwise: str
    basis: str
    scenario: Scenario


def other_paths(scenario: Scenario) -> tuple[OtherPath, ...]:
    """The alternatives to the scenario's assumed paths, which some draws take; empty if all are given or known, or if
    its method does not use them. The transport is no such path: an interval is of the assumed one, and an answer says
    the time of the other beside it.
    """
    if "transport" not in scenario.method.uses:
        return ()
    machine = resolve_machine(scenario.cluster)
    between, cluster = machine.between, scenario.cluster
    alternatives = []
    if NVLINK_THERE in between.open and between.nvlink is not None:
        basis = (
            f"{machine.device.title} as a module in a server with NVLink; in {OTHERWISE:.0%} of the draws cards "
            "without (--host or cluster.nvlink says which)"
        )
        rate = f"{between.nvlink.value / 1e9:g}GB/s"
        alternatives.append(OtherPath(NVLINK_THERE, rate, "none", basis, _with(scenario, replace(cluster, nvlink=0.0))))
    return tuple(alternatives)


def path_by_draw(paths: Sequence[OtherPath], seed: int, draws: int = DRAWS) -> IntArray:
    """The index in `paths` per joint draw, int64[draws]; -1 for the assumed ones. Of several, the first decides."""
    chosen = np.full(draws, -1, dtype=np.int64)
    for place in reversed(range(len(paths))):
        chosen[position(paths[place].name, seed, draws) < 2.0 * OTHERWISE - 1.0] = place
    return chosen


def _with(scenario: Scenario, cluster: ClusterSpec) -> Scenario:
    return replace(scenario, cluster=cluster)
