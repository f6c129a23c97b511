"""How rows pass between GPUs where nobody said it: in some of the joint draws the question is asked with other paths.

Which software trains is not known, nor whether GPUs that are sold both as modules and as cards have NVLink. Neither is
a number with a range: the schedule is another one. So a share of the draws is of the scenario with the other path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gcnsim.ids import IntArray
from gcnsim.machine import NVLINK_THERE, TRANSPORT, resolve_machine
from gcnsim.scenario import DIRECT, STAGED, ClusterSpec, Scenario
from gcnsim.uncertainty.assumed import DRAWS, position

OTHERWISE: Final = 0.25
"""Share of the draws in which a path is the other one. Assumed: most who train on several GPUs use NCCL, and most GPUs
that are sold as modules too are modules in servers of several; with a quarter, an interval of 90 % holds the other."""


@dataclass(frozen=True, slots=True)
class OtherPath:
    """A path that may be there in place of the one assumed. name: of what is open. value: what is assumed, and what it
    is otherwise, in a word each. basis: why that one is assumed. scenario: the question with the other path."""

    name: str
    value: str
    otherwise: str
    basis: str
    scenario: Scenario


def other_paths(scenario: Scenario) -> tuple[OtherPath, ...]:
    """The paths that may be in place of those assumed of the scenario; none where all of them are said, or where its
    method sends nothing over them."""
    if "transport" not in scenario.method.uses:
        return ()
    machine = resolve_machine(scenario.cluster)
    between, cluster = machine.between, scenario.cluster
    found = []
    if TRANSPORT in between.open:
        basis = f"{between.why}; in {OTHERWISE:.0%} of the draws rows are staged through host memory, as with gloo"
        found.append(OtherPath(TRANSPORT, DIRECT, STAGED, basis, _with(scenario, replace(cluster, transport=STAGED))))
    if NVLINK_THERE in between.open and between.nvlink is not None:
        basis = (
            f"{machine.device.title} as a module in a server with NVLink; in {OTHERWISE:.0%} of the draws cards "
            "without (--host or cluster.nvlink says which)"
        )
        rate = f"{between.nvlink.value / 1e9:g}GB/s"
        found.append(OtherPath(NVLINK_THERE, rate, "none", basis, _with(scenario, replace(cluster, nvlink=0.0))))
    return tuple(found)


def path_by_draw(paths: Sequence[OtherPath], seed: int, draws: int = DRAWS) -> IntArray:
    """Which of `paths` each joint draw has, int64[draws]; -1 for those assumed. Of several, the first decides."""
    found = np.full(draws, -1, dtype=np.int64)
    for place in reversed(range(len(paths))):
        found[position(paths[place].name, seed, draws) < 2.0 * OTHERWISE - 1.0] = place
    return found


def _with(scenario: Scenario, cluster: ClusterSpec) -> Scenario:
    return replace(scenario, cluster=cluster)
