"""The Python API: a what-if, a simulation or a graph in one call each.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.results[0]["method"]
'pipegcn'
"""

from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.lazy import lazily

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

_found = lazily(__name__, {name: module for module, names in _NAMES.items() for name in names})


def __getattr__(name: str) -> Any:
    value = _found(name)
    if name in _BRIEF:
        from gcnsim.api.brief import brief

        value = globals()[name] = brief(value)
    return value


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
