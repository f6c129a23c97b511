"""One run: scenario in, result out."""

from gcnsim.study.accesses import Accesses, open_accesses
from gcnsim.study.batches import TRAIN, mini_batch, plan_of
from gcnsim.study.corners import Corner, keeps_all
from gcnsim.study.expected_batches import WITHIN, degree_law, degree_spreads
from gcnsim.study.faults import refuse_undrawn
from gcnsim.study.fitted import platform_of
from gcnsim.study.graphs import GraphAccesses
from gcnsim.study.least import holds, least_gpus, told_at_any
from gcnsim.study.machine import CALIBRATED, HOST_MEMORY, calibration_of, device_link, machine, profiles, with_fitted
from gcnsim.study.memory import capacities, fits, memory_of, tightest
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.model import Declared, Model, resolve_model
from gcnsim.study.parts import COMMUNICATION, OTHER, Parts, made_up, worker_parts
from gcnsim.study.paths import refuse_idle
from gcnsim.study.placement import Placed, Placement, placements
from gcnsim.study.published import BOUNDARY, CACHE_HITS, DISPERSION, LOAD, REMOTE, VR_ROWS, PublishedAccesses, Range
from gcnsim.study.recorded import CORE, device_of, scenario_of
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.run_trace import refuse_other_trace
from gcnsim.study.steady import Steady, Window
from gcnsim.study.stored import ProfileAccesses
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.surrogates import SurrogateAccesses
from gcnsim.study.tables import AsPublished, TableAccesses, random_parts
from gcnsim.study.utilization import utilization_of

__all__ = [
    "BOUNDARY",
    "CACHE_HITS",
    "CALIBRATED",
    "COMMUNICATION",
    "CORE",
    "DISPERSION",
    "HOST_MEMORY",
    "LOAD",
    "OTHER",
    "REMOTE",
    "TRAIN",
    "VR_ROWS",
    "WITHIN",
    "Accesses",
    "AsPublished",
    "Corner",
    "Declared",
    "GraphAccesses",
    "Metrics",
    "Model",
    "Parts",
    "Placed",
    "Placement",
    "ProfileAccesses",
    "PublishedAccesses",
    "Range",
    "Result",
    "Steady",
    "SurrogateAccesses",
    "TableAccesses",
    "TraceAccesses",
    "Window",
    "calibration_of",
    "capacities",
    "degree_law",
    "degree_spreads",
    "device_link",
    "device_of",
    "fits",
    "holds",
    "keeps_all",
    "least_gpus",
    "link_units",
    "machine",
    "made_up",
    "measure",
    "memory_of",
    "mini_batch",
    "open_accesses",
    "placements",
    "plan_of",
    "platform_of",
    "profiles",
    "random_parts",
    "refuse_idle",
    "refuse_other_trace",
    "refuse_undrawn",
    "resolve_model",
    "scenario_of",
    "study",
    "tightest",
    "told_at_any",
    "utilization_of",
    "with_fitted",
    "worker_parts",
    "write_schedule",
]
