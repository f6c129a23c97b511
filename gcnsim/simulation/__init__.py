"""One run: a scenario in, a result out."""

from gcnsim.simulation.faults import refuse_undrawn
from gcnsim.simulation.limit import Limit, find_limit
from gcnsim.simulation.measured_setting import answering, measured_methods
from gcnsim.simulation.metrics import Metrics, balanced_parts, link_units, measure, worker_parts
from gcnsim.simulation.run import Result, memory_of, simulate_scenario, tightest, write_schedule
from gcnsim.simulation.steady import Steady, Window
from gcnsim.simulation.time_limit import GRAIN, fidelity, wrong_by

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
    "link_units",
    "measure",
    "measured_methods",
    "memory_of",
    "refuse_undrawn",
    "simulate_scenario",
    "tightest",
    "worker_parts",
    "write_schedule",
    "wrong_by",
]
