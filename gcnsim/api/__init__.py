"""The Python API: a what-if, a simulation or a graph in one call each.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.results[0]["method"]
'pipegcn'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gcnsim.api.answer import Answer, bandwidth_curve
    from gcnsim.api.evidence import (
        calibrate,
        render_calibration,
        render_validation,
        reproduce,
        validate,
        write_validation,
    )
    from gcnsim.api.iterations import (
        RunTimeline,
        compare,
        render_comparison,
        run_timeline,
        setting_run,
        write_comparison,
    )
    from gcnsim.api.question import what_if
    from gcnsim.api.recommending import Recommended, recommend
    from gcnsim.api.row_cache import RowCache
    from gcnsim.api.simulation import Simulation, simulate, write_json, write_result, write_timeline
    from gcnsim.api.sweeping import Sweep, ask, open_sweep, plan_sweep, sweep, sweep_warnings
    from gcnsim.graph import Graph, from_dgl, from_networkx, from_pyg, from_scipy, load_graph
    from gcnsim.hardware import PriceBook
    from gcnsim.records.calibration import write_calibration

_NAMES: Final = {
    "gcnsim.api.answer": ("Answer", "bandwidth_curve"),
    "gcnsim.api.evidence": (
        "calibrate",
        "render_calibration",
        "render_validation",
        "reproduce",
        "validate",
        "write_validation",
    ),
    "gcnsim.api.iterations": (
        "RunTimeline",
        "compare",
        "render_comparison",
        "run_timeline",
        "setting_run",
        "write_comparison",
    ),
    "gcnsim.api.question": ("what_if",),
    "gcnsim.api.recommending": ("Recommended", "recommend"),
    "gcnsim.api.row_cache": ("RowCache",),
    "gcnsim.api.simulation": ("Simulation", "simulate", "write_json", "write_result", "write_timeline"),
    "gcnsim.api.sweeping": ("Sweep", "ask", "open_sweep", "plan_sweep", "sweep", "sweep_warnings"),
    "gcnsim.records.calibration": ("write_calibration",),
    "gcnsim.graph": ("Graph", "from_dgl", "from_networkx", "from_pyg", "from_scipy", "load_graph"),
    "gcnsim.hardware": ("PriceBook",),
}

_BRIEF: Final = frozenset({"compare", "load_graph", "open_sweep", "recommend", "simulate", "sweep", "what_if"})
"""Those whose errors say where they were asked, and no more."""

_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    if name in _BRIEF:
        from gcnsim.api.brief import brief

        value = brief(value)
    # Stored once it is brief: all threads get the same object.
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
