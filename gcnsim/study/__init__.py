"""One run: scenario in, result out."""

from gcnsim.study.accesses import (
    DISPERSION,
    VR_ROWS,
    Accesses,
    Corner,
    GraphAccesses,
    PublishedAccesses,
    keeps_all,
    open_accesses,
)
from gcnsim.study.machine import machine
from gcnsim.study.metrics import Metrics, link_units, measure
from gcnsim.study.model import Model, resolve_model
from gcnsim.study.steady import Steady, Window
from gcnsim.study.study import Result, study, write_schedule

__all__ = [
    "DISPERSION",
    "VR_ROWS",
    "Accesses",
    "Corner",
    "GraphAccesses",
    "Metrics",
    "Model",
    "PublishedAccesses",
    "Result",
    "Steady",
    "Window",
    "keeps_all",
    "link_units",
    "machine",
    "measure",
    "open_accesses",
    "resolve_model",
    "study",
    "write_schedule",
]
