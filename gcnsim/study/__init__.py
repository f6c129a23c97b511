"""One run: scenario in, result out."""

from gcnsim.study.accesses import Accesses, open_accesses
from gcnsim.study.corners import Corner, keeps_all
from gcnsim.study.fitted import platform_of
from gcnsim.study.graphs import GraphAccesses
from gcnsim.study.machine import CALIBRATED, HOST_MEMORY, calibration_of, device_link, machine, profiles, with_fitted
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.model import Declared, Model, resolve_model
from gcnsim.study.published import BOUNDARY, CACHE_HITS, DISPERSION, LOAD, REMOTE, VR_ROWS, PublishedAccesses, Range
from gcnsim.study.recorded import CORE, device_of, scenario_of
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.run_trace import refuse_other_trace
from gcnsim.study.steady import Steady, Window
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.surrogates import SurrogateAccesses

__all__ = [
    "BOUNDARY",
    "CACHE_HITS",
    "CALIBRATED",
    "CORE",
    "DISPERSION",
    "HOST_MEMORY",
    "LOAD",
    "REMOTE",
    "VR_ROWS",
    "Accesses",
    "Corner",
    "Declared",
    "GraphAccesses",
    "Metrics",
    "Model",
    "PublishedAccesses",
    "Range",
    "Result",
    "Steady",
    "SurrogateAccesses",
    "TraceAccesses",
    "Window",
    "calibration_of",
    "device_link",
    "device_of",
    "keeps_all",
    "link_units",
    "machine",
    "measure",
    "open_accesses",
    "platform_of",
    "profiles",
    "refuse_other_trace",
    "resolve_model",
    "scenario_of",
    "study",
    "with_fitted",
    "write_schedule",
]
