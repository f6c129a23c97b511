"""One run: scenario in, result out."""

from gcnsim.study.accesses import Accesses, open_accesses
from gcnsim.study.batches import TRAIN, mini_batch, plan_of
from gcnsim.study.corners import Corner, keeps_all
from gcnsim.study.expected_batches import WITHIN, degree_law, degree_spreads
from gcnsim.study.fitted import platform_of
from gcnsim.study.graphs import GraphAccesses
from gcnsim.study.machine import CALIBRATED, HOST_MEMORY, calibration_of, device_link, machine, profiles, with_fitted
from gcnsim.study.memory import device_bytes, fits, least_gpus, memory_of
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.model import Declared, Model, resolve_model
from gcnsim.study.parts import COMMUNICATION, OTHER, Parts, worker_parts
from gcnsim.study.published import BOUNDARY, CACHE_HITS, DISPERSION, LOAD, REMOTE, VR_ROWS, PublishedAccesses, Range
from gcnsim.study.recorded import CORE, device_of, scenario_of
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.run_trace import refuse_other_trace
from gcnsim.study.steady import Steady, Window
from gcnsim.study.stored import ProfileAccesses
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.surrogates import SurrogateAccesses

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
    "Corner",
    "Declared",
    "GraphAccesses",
    "Metrics",
    "Model",
    "Parts",
    "ProfileAccesses",
    "PublishedAccesses",
    "Range",
    "Result",
    "Steady",
    "SurrogateAccesses",
    "TraceAccesses",
    "Window",
    "calibration_of",
    "degree_law",
    "degree_spreads",
    "device_bytes",
    "device_link",
    "device_of",
    "fits",
    "keeps_all",
    "least_gpus",
    "link_units",
    "machine",
    "measure",
    "memory_of",
    "mini_batch",
    "open_accesses",
    "plan_of",
    "platform_of",
    "profiles",
    "refuse_other_trace",
    "resolve_model",
    "scenario_of",
    "study",
    "with_fitted",
    "worker_parts",
    "write_schedule",
]
