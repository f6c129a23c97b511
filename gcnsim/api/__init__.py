"""The Python API: a what-if, a simulation or a graph in one call each.

>>> import gcnsim
>>> answer = gcnsim.what_if(gpus=2, method="pipegcn")
>>> answer.results[0]["method"]
'pipegcn'
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from gcnsim.core.errors import GcnsimError

if TYPE_CHECKING:
    from gcnsim.api.answer import Answer as Answer
    from gcnsim.api.answer import bandwidth_curve as bandwidth_curve
    from gcnsim.api.evidence import calibrate as calibrate
    from gcnsim.api.evidence import render_calibration as render_calibration
    from gcnsim.api.evidence import render_validation as render_validation
    from gcnsim.api.evidence import reproduce as reproduce
    from gcnsim.api.evidence import validate as validate
    from gcnsim.api.evidence import write_validation as write_validation
    from gcnsim.api.iterations import RunTimeline as RunTimeline
    from gcnsim.api.iterations import compare as compare
    from gcnsim.api.iterations import render_comparison as render_comparison
    from gcnsim.api.iterations import run_timeline as run_timeline
    from gcnsim.api.iterations import setting_run as setting_run
    from gcnsim.api.iterations import write_comparison as write_comparison
    from gcnsim.api.question import what_if as what_if
    from gcnsim.api.recommending import Recommended as Recommended
    from gcnsim.api.recommending import recommend as recommend
    from gcnsim.api.row_cache import RowCache as RowCache
    from gcnsim.api.simulation import Simulation as Simulation
    from gcnsim.api.simulation import simulate as simulate
    from gcnsim.api.simulation import write_json as write_json
    from gcnsim.api.simulation import write_result as write_result
    from gcnsim.api.simulation import write_timeline as write_timeline
    from gcnsim.api.sweeping import Sweep as Sweep
    from gcnsim.api.sweeping import ask as ask
    from gcnsim.api.sweeping import open_sweep as open_sweep
    from gcnsim.api.sweeping import plan_sweep as plan_sweep
    from gcnsim.api.sweeping import sweep as sweep
    from gcnsim.api.sweeping import sweep_warnings as sweep_warnings
    from gcnsim.graph import Graph as Graph
    from gcnsim.graph import from_dgl as from_dgl
    from gcnsim.graph import from_networkx as from_networkx
    from gcnsim.graph import from_pyg as from_pyg
    from gcnsim.graph import from_scipy as from_scipy
    from gcnsim.graph import load_graph as load_graph
    from gcnsim.hardware import PriceBook as PriceBook
    from gcnsim.records.calibration import write_calibration as write_calibration

Error = GcnsimError
"""What every function raises for an input that it cannot use."""

P = ParamSpec("P")
T = TypeVar("T")

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

__all__ = sorted(_HOMES)


def brief(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, whose GcnsimError carries no frames of this package but one."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except GcnsimError as error:
            raise error.with_traceback(None) from None

    return wrapper


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    if name in _BRIEF:
        value = brief(value)
    # Stored once it is brief: all threads get the same object.
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
