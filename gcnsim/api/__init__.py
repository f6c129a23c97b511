"""The Python API: a what-if, a simulation or a graph in one call each.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.results[0]["method"]
'pipegcn'
"""

from gcnsim.api.answer import Answer, bandwidth_curve
from gcnsim.api.brief import brief
from gcnsim.api.evidence import (
    calibrate,
    render_calibration,
    render_validation,
    reproduce,
    validate,
    write_validation,
)
from gcnsim.api.iterations import RunTimeline, render_comparison, run_timeline, setting_run, write_comparison
from gcnsim.api.iterations import compare as _compare
from gcnsim.api.question import what_if as _what_if
from gcnsim.api.recommending import Recommended
from gcnsim.api.recommending import recommend as _recommend
from gcnsim.api.row_cache import RowCache
from gcnsim.api.simulation import Simulation, write_json, write_result, write_timeline
from gcnsim.api.simulation import simulate as _simulate
from gcnsim.api.sweeping import Sweep, ask, plan_sweep, sweep_warnings
from gcnsim.api.sweeping import open_sweep as _open_sweep
from gcnsim.api.sweeping import sweep as _sweep
from gcnsim.calibration_record.record import write_calibration
from gcnsim.graph import Graph, from_dgl, from_networkx, from_pyg, from_scipy
from gcnsim.graph import load_graph as _load_graph
from gcnsim.hardware import PriceBook

compare = brief(_compare)
load_graph = brief(_load_graph)
open_sweep = brief(_open_sweep)
recommend = brief(_recommend)
simulate = brief(_simulate)
sweep = brief(_sweep)
what_if = brief(_what_if)

__all__ = [
    "Answer",
    "Graph",
    "PriceBook",
    "Recommended",
    "RowCache",
    "RunTimeline",
    "Simulation",
    "Sweep",
    "ask",
    "bandwidth_curve",
    "calibrate",
    "compare",
    "from_dgl",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "load_graph",
    "open_sweep",
    "plan_sweep",
    "recommend",
    "render_calibration",
    "render_comparison",
    "render_validation",
    "reproduce",
    "run_timeline",
    "setting_run",
    "simulate",
    "sweep",
    "sweep_warnings",
    "validate",
    "what_if",
    "write_calibration",
    "write_comparison",
    "write_json",
    "write_result",
    "write_timeline",
    "write_validation",
]
