"""What an answer assumes: of the workload where publications say nothing, of the machine where nobody measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from gcnsim.errors import plural
from gcnsim.hardware import QUANTITIES, Figure
from gcnsim.ids import FloatArray
from gcnsim.machine import NVLINK_THERE, TRANSPORT, BetweenGpus, resolve_machine
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import Assumed, MeasuredTimes
from gcnsim.scenario import Scenario, setting_text
from gcnsim.simulation import answering
from gcnsim.uncertainty import Assumption, assumptions_of, other_paths, placements, used_figures

PLACEMENT = "placement of parts"


def workload_assumptions(studies: StudyCache, scenario: Scenario, scenarios: Sequence[Scenario]) -> Iterator[Assumed]:
    """What stands in for what publications do not say of the workload of `scenarios`, with its range."""
    if any(scenario.method.mini_batches for scenario in scenarios):
        yield from studies.accesses.batch_assumptions(scenarios)
    if any(len(placements(scenario)) > 1 for scenario in scenarios):
        basis = "which part of the graph each of the unequal GPUs gets; a partition.file of workload.graph would say"
        yield Assumed(PLACEMENT, "as numbered", "most work on the fastest", "most work on the slowest", basis, True)
    if not all(scenario.method.mini_batches for scenario in scenarios):
        yield from studies.accesses.assumptions(scenario, scenarios)
    paths = {path.name: path for scenario in scenarios for path in other_paths(scenario)}
    for path in paths.values():
        yield Assumed(path.name, path.value, path.otherwise, path.value, path.basis, True)


def machine_figures(scenario: Scenario, source: str, *, batches: bool = False) -> Iterator[Assumed]:
    """The figures of the scenario's machine that come from `source` and that a cost law reads.

    batches: whether mini-batches are trained, which need figures of their own.
    """
    for name, figure in used_figures(resolve_machine(scenario.cluster), batches=batches).items():
        if figure.source == source:
            yield Assumed(name, *_written(name.rpartition(".")[2], figure), figure.reference, source == "assumed")


def assumptions_by_name(scenario: Scenario) -> dict[str, Assumption]:
    """The assumed figures that the scenario's time depends on."""
    machine = resolve_machine(scenario.cluster)
    return {assumed.name: assumed for assumed in assumptions_of(machine, batches=scenario.method.mini_batches)}


def times_alone(studies: StudyCache, candidate: Candidate) -> dict[str, FloatArray]:
    """By assumption, seconds per iteration with it alone at the low and the high end of its range, float64[2]."""
    left_open = studies.factors(candidate.scenario)
    return {name: left_open.scaled(candidate.iteration_s, np.array(ends)) for name, ends in left_open.alone.items()}


def figure_words(assumed: Assumption) -> tuple[str, str, str, str]:
    """Value, low and high end of an assumed figure with their unit, and its basis."""
    return *_written(assumed.name.rpartition(".")[2], assumed.figure), assumed.figure.reference


def _written(field: str, figure: Figure) -> tuple[str, str, str]:
    """Value, low and high of a figure with their unit."""
    quantity = QUANTITIES[field]
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    texts = [f"{one:g}" if quantity is None else quantity.exact(one) for one in (figure.value, low, high)]
    return texts[0], texts[1], texts[2]


ASSUMED = " (assumed)"


def heading_words(scenarios: Sequence[Scenario]) -> str | None:
    """NVLink and transport, as far as all scenarios share them: `NVLink 300 GB/s, transport direct (assumed)`; None
    where nothing passes between GPUs."""
    found = _distinct(scenarios)
    if not found:
        return None
    parts = []
    if len({one.nvlink and one.nvlink.value for one in found}) == 1 and found[0].nvlink is not None:
        assumed = NVLINK_THERE in found[0].open
        sizes = {scenario.cluster.nvlink_gpus for scenario in scenarios}
        joined = f" within {sizes.pop()} GPUs" if len(sizes) == 1 and None not in sizes else ""
        parts.append(f"NVLink {found[0].nvlink.value / 1e9:g} GB/s{joined}{ASSUMED if assumed else ''}")
    transports = {(one.transport, TRANSPORT in one.open) for one in found}
    if len(transports) == 1:
        (name, assumed), *_ = transports
        parts.append(f"transport {name}{ASSUMED if assumed else ''}")
    return ", ".join(parts) or None


def basis_words(scenario: Scenario) -> str | None:
    """Where the paths between GPUs of the scenario's machine come from; None where nothing passes between GPUs."""
    found = _distinct([scenario])
    if not found:
        return None
    between, machine = found[0], resolve_machine(scenario.cluster)
    how = f"transport {between.transport}: {between.why}"
    if TRANSPORT in between.open:
        how += " (assumed: --transport chooses)"
    if min(scenario.cluster.gpus, scenario.cluster.gpus_per_server) == 1:
        return how
    if between.nvlink is None:
        used = between.direct and not between.peer_to_peer
        inside = "PCIe, through host memory: its driver has no peer to peer" if used else "PCIe"
        return f"{how}; within a server {inside}"
    rate = f"{between.nvlink.value / 1e9:g} GB/s per direction of one GPU"
    if between.nvlink.source == "given":
        size = scenario.cluster.nvlink_gpus
        joined = "" if size is None else f", within {size} GPUs each, PCIe between others"
        return f"{how}; NVLink, {rate}, as asked{joined}"
    name = "NVLink" if between.generation is None else f"NVLink {between.generation}"
    whose = machine.host.name if machine.host.device is not None else f"{machine.device.name} as a module (assumed)"
    return f"{how}; {name} of {whose}, {rate} ({between.nvlink.reference}, {between.nvlink.date})"


def _distinct(scenarios: Sequence[Scenario]) -> list[BetweenGpus]:
    """The paths of those scenarios whose GPUs send anything over them."""
    sending = [scenario for scenario in scenarios if scenario.cluster.gpus > 1 and "transport" in scenario.method.uses]
    machines = [resolve_machine(cluster) for cluster in dict.fromkeys(one.cluster for one in sending)]
    return [machine.between for machine in machines if machine.kind == "gpu"]


LINKS: Final = "links and messages are still assumed; a calibration gives them (gcnsim calibrate, --calibration)"
LINKS_FITTED: Final = "links and messages are those of the calibration"
LABEL: Final = "MEASURED on {device}"
"""The heading's word for such an answer."""


def measured_times(scenarios: Sequence[Scenario]) -> MeasuredTimes | None:
    """What stands in the place of the cost laws of these settings; None where nothing does."""
    machine = resolve_machine(scenarios[0].cluster)
    found = machine.measured
    if found is None:
        return None
    answers = {scenario: answer for scenario in scenarios if (answer := answering(scenario)) is not None}
    between = tuple(
        dict.fromkeys(setting_text(scenario.method) for scenario, own in answers.items() if own.far is not None)
    )
    interpolated = f", between two measured rates for {', '.join(between)}" if between else ""
    error = max(answer.error for answer in answers.values())
    counts = [len(part.seconds) for answer in answers.values() for part in answer.near.parts.values()]
    times = f"{min(counts)}" + (f" to {max(counts)}" if max(counts) > min(counts) else "")
    text = (
        f"measured on {found.device['name']}: {plural(found.parts, 'part')}, each alone, {times} iterations, known "
        f"to {100 * error:.1f} %{interpolated}; {found.path} (SHA-256 {found.sha256[:12]})"
    )
    links = LINKS if machine.calibration is None else LINKS_FITTED
    return MeasuredTimes(found.path, found.sha256, str(found.device["name"]), error, between, links, text)
