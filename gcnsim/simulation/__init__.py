"""One run: scenario in, result out."""

from gcnsim.simulation.faults import refuse_undrawn
from gcnsim.simulation.fidelity import GRAIN, fidelity, wrong_by
from gcnsim.simulation.limit import Limit, find_limit
from gcnsim.simulation.measured_setting import answering, measured_methods
from gcnsim.simulation.memory import fits, memory_of, tightest
from gcnsim.simulation.metrics import Metrics, link_units, measure
from gcnsim.simulation.parts import balanced_parts, worker_parts
from gcnsim.simulation.run import Result, study, write_schedule
from gcnsim.simulation.steady import Steady, Window

__all__ = [
    "GRAIN",
    "Limit",
    "Metrics",
    "Result",
    "Steady",
    "Window",
    "answering",
    "balanced_parts",
    "fidelity",
    "find_limit",
    "fits",
    "link_units",
    "measure",
    "measured_methods",
    "memory_of",
    "refuse_undrawn",
    "study",
    "tightest",
    "worker_parts",
    "write_schedule",
    "wrong_by",
]
