"""A method and its knobs in words."""

from __future__ import annotations

from gcnsim.knobs import KNOBS
from gcnsim.methods import NO_OVERLAP, Method
from gcnsim.scenario.method_section import written_knobs


def setting_text(method: Method) -> str:
    """A method and its knobs in words: `psc-gcn with tau 1, epsilon 0.1 and a cache of 30 %`."""
    knobs = []
    if method.has("tau"):
        knobs += [f"tau {method.tau}", f"epsilon {method.epsilon:g}"]
    if method.has("rate"):
        knobs.append(f"rate {method.rate:g}")
    if method.has("cache") and not method.cache.empty:
        knobs.append("a cache of " + method.cache.describe().replace("%", " %"))
    knobs += filter(None, [knob_text(method)])
    if not knobs:
        return method.name
    return f"{method.name} with {', '.join(knobs[:-1])}{' and ' if len(knobs) > 1 else ''}{knobs[-1]}"


def knob_text(method: Method) -> str:
    """The knobs that no column of its own shows, where they are not at the method's default: `batch 1000`."""
    values, told = method.values(), written_knobs(method)
    own = [knob for knob in method.knobs() if knob.name not in KNOBS and values[knob.name] != knob.standard]
    moved = [f"{knob.name} {told[knob.name]}" for knob in own]
    return ", ".join([*moved, *([] if method.overlap == NO_OVERLAP else [f"overlap {method.overlap}"])])
