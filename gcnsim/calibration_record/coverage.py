"""Settings of runs and of questions as numbers, and which of them lie beyond those that a calibration saw.

One rule for recorded runs and for questions. A setting that is a name (method, model, graph) is a key of its own with
value 1, `method.psc-gcn`, so that a record's ranges say which names were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gcnsim.errors import UnitError
from gcnsim.units import FRACTION, NBYTES

KNOBS: Final = ("tau", "epsilon", "rate")
ALWAYS: Final = ("workers", "bandwidth", "features", "layers", "hidden", *KNOBS)
"""Keys that every record has, where its runs had them; older ones have no others."""

NOWHERE: Final = "unknown"
"""Stands for the graph of a question that knows only statistics."""


def settings(
    names: Mapping[str, str | None], place: Mapping[str, Any], widths: Sequence[int], knobs: Mapping[str, Any]
) -> dict[str, float]:
    """What a range is kept of.

    names: `method`, `model`, and `graph` by its hash (None: unknown). place: `hosts`, `workers_per_host`, and where
    there are several hosts `bandwidth` (bytes/s) and `latency_s`. widths: of the rows before the first and after each
    layer. knobs: those that the method has, cache as text.
    """
    found = {f"{kind}.{name or NOWHERE}": 1.0 for kind, name in names.items()}
    hosts, each = place["hosts"], place["workers_per_host"]
    numbers = {"workers": place.get("workers", hosts * each), "hosts": hosts, "workers_per_host": each}
    if hosts > 1:
        # One host sends nothing through its link.
        numbers |= {"bandwidth": place["bandwidth"], "latency_s": place["latency_s"]}
    numbers |= {"features": widths[0], "layers": len(widths) - 1, "hidden": max(widths[1:])}
    numbers |= {name: knobs[name] for name in KNOBS if name in knobs} | _cache(knobs.get("cache"))
    return found | {name: float(value) for name, value in numbers.items()}


def model_name(model: str, *, pools: bool) -> str:
    """The name of a model, GraphSAGE's pooling beside its mean: a calibration on the one says little of the other."""
    return f"{model}-pool" if pools else model


def beyond(asked: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], graph: str) -> Iterator[str]:
    """Each of the settings `asked` that is outside of `ranges` or has none there, in words; graph: its name."""
    if not ranges:
        yield "every setting (calibrated without runs)"
        return
    named = any(key.startswith("method.") for key in ranges)
    if not named:
        yield "method, model, graph, hosts, latency and cache (an older record, which has them not; calibrate again)"
    for key, value in asked.items():
        kind, dot, name = key.partition(".")
        told = f"{kind} {graph if kind == 'graph' else name}" if dot else f"{key} {value:g}"
        if key not in ranges and (named or key in ALWAYS):
            yield f"{told} (never calibrated)"
        elif key in ranges and not ranges[key][0] <= value <= ranges[key][1]:
            low, high = ranges[key]
            yield f"{told} (calibrated: {low:g} to {high:g})" if low < high else f"{told} (calibrated: {low:g})"


def _cache(size: object) -> dict[str, float]:
    """A cache of a share of the boundary, or of bytes, which no share can be told of."""
    if size is None:
        return {}
    try:
        return {"cache": FRACTION.parse(str(size))}
    except UnitError:
        return {"cache_bytes": NBYTES.parse(str(size))}
