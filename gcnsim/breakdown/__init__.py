"""Where each instant of a worker's iteration goes: one function for simulated, recorded and profiled timelines.

The parts stand in docs/glossary.md ("Where an iteration goes"); what each source knows of them, in `reading`.
"""

from gcnsim.breakdown.breakdown import NEVER, Breakdown, breakdown
from gcnsim.breakdown.means import PHASES, Means, phases_of_means
from gcnsim.breakdown.parts import EXPOSED, HIDDEN, OTHER, Parts, exposed_s, iteration_s, other_s
from gcnsim.breakdown.reading import PROFILED, RECORDED, RECORDED_SAMPLING_ITSELF, SIMULATED, Reading, Sampling
from gcnsim.breakdown.spans import Spans

__all__ = [
    "EXPOSED",
    "HIDDEN",
    "NEVER",
    "OTHER",
    "PHASES",
    "PROFILED",
    "RECORDED",
    "RECORDED_SAMPLING_ITSELF",
    "SIMULATED",
    "Breakdown",
    "Means",
    "Parts",
    "Reading",
    "Sampling",
    "Spans",
    "breakdown",
    "exposed_s",
    "iteration_s",
    "other_s",
    "phases_of_means",
]
