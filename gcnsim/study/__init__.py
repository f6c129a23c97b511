"""One run: scenario in, result out."""

from gcnsim.study.accesses import Accesses, open_accesses
from gcnsim.study.corners import Corner, keeps_all
from gcnsim.study.graphs import GraphAccesses
from gcnsim.study.machine import HOST_MEMORY, calibration_of, machine, profiles
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.model import Declared, Model, resolve_model
from gcnsim.study.published import BOUNDARY, CACHE_HITS, DISPERSION, LOAD, REMOTE, VR_ROWS, PublishedAccesses, Range
from gcnsim.study.recorded import scenario_of
from gcnsim.study.replays import TraceAccesses
from gcnsim.study.steady import Steady, Window
from gcnsim.study.study import Result, study, write_schedule
from gcnsim.study.surrogates import SurrogateAccesses

__all__ = [
    "BOUNDARY",
    "CACHE_HITS",
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
    "keeps_all",
    "link_units",
    "machine",
    "measure",
    "open_accesses",
    "profiles",
    "resolve_model",
    "scenario_of",
    "study",
    "write_schedule",
]
