"""What an answer assumes: of the workload where publications say nothing, of the machine where nobody measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcnsim.hardware import QUANTITIES, Figure
from gcnsim.machine import resolve_machine
from gcnsim.planning.candidate import Estimate
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import Assumed
from gcnsim.scenario import Scenario
from gcnsim.uncertainty import Assumption, other_paths, placements, used_figures

PLACEMENT = "placement of parts"


def workload_assumptions(studies: StudyCache, scenario: Scenario, estimates: Sequence[Estimate]) -> Iterator[Assumed]:
    """What stands in for what publications do not say of the workload of `estimates`, with its range."""
    asked = [each.scenario for each in estimates]
    if any(each.method.mini_batches for each in asked):
        yield from studies.accesses.batch_assumptions(asked)
    if any(len(placements(each)) > 1 for each in asked):
        basis = "which part of the graph each of the unequal GPUs gets; a partition.file of workload.graph would say"
        yield Assumed(PLACEMENT, "as numbered", "most work on the fastest", "most work on the slowest", basis, True)
    if not all(each.method.mini_batches for each in asked):
        yield from studies.accesses.assumptions(scenario, asked)
    paths = {path.name: path for each in asked for path in other_paths(each)}
    for path in paths.values():
        yield Assumed(path.name, path.value, path.otherwise, path.value, path.basis, True)


def machine_figures(scenario: Scenario, source: str, *, batches: bool = False) -> Iterator[Assumed]:
    """The figures of the scenario's machine that come from `source` and that a cost law reads.

    batches: whether mini-batches are trained, which need figures of their own.
    """
    for name, figure in used_figures(resolve_machine(scenario.cluster), batches=batches).items():
        if figure.source == source:
            yield Assumed(name, *_written(name.rpartition(".")[2], figure), figure.reference, source == "assumed")


def figure_words(each: Assumption) -> tuple[str, str, str, str]:
    """Value, low and high end of an assumed figure with their unit, and its basis."""
    return *_written(each.name.rpartition(".")[2], each.figure), each.figure.reference


def _written(field: str, figure: Figure) -> tuple[str, str, str]:
    """Value, low and high of a figure with their unit."""
    quantity = QUANTITIES[field]
    texts = [f"{each:g}" if quantity is None else quantity.exact(each) for each in _ends(figure)]
    return texts[0], texts[1], texts[2]


def _ends(figure: Figure) -> tuple[float, float, float]:
    low = figure.value if figure.low is None else figure.low
    return figure.value, low, figure.value if figure.high is None else figure.high
