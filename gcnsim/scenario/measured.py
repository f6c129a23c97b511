"""Fill open fields of a question from a file of measured compute times: its graph, parts, model, device.

This applies to the fields of a file or an option before defaults fill in the others. Given values stay, and are refused
later if they differ from the measured ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import FRACTION
from gcnsim.hardware import CORE, gpu_named
from gcnsim.methods import DEFAULT, is_method, method_type
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.compute_reading import measured_compute
from gcnsim.scenario.specs import SOURCES

FREE_KNOBS: Final = ("tau", "cache", "cache_policy", "norms")
"""Knobs that a question may choose independently of the measurement."""

CUTS: Final = ("metis", "random", "block")


def fill_measured(raw: dict[str, Any]) -> None:
    """Fill the open fields of the scenario `raw` from the file in `cluster.measured_compute`.

    Raises FileError for an unusable file, ScenarioError if neither names the graph.
    """
    path = raw.get("cluster", {}).get("measured_compute")
    if not isinstance(path, str):
        return
    measured = measured_compute(path)
    for section, fields in (
        ("cluster", _cluster(measured)),
        ("workload", _model(measured)),
        ("partition", {} if raw.get("workload", {}).get("trace") else _partition(measured)),
    ):
        values = dict(raw.get(section, {}))
        raw[section] = values | {name: value for name, value in fields.items() if values.get(name) is None}
    _fill_method(raw, measured)
    if raw["cluster"].get("devices") is not None:
        raw["cluster"].pop("device", None)
    if all(raw["workload"].get(name) is None for name in SOURCES):
        raw["workload"]["graph"] = _graph(measured)


def _fill_method(raw: dict[str, Any], measured: MeasuredCompute) -> None:
    """Fill the knobs of the scenario's method that were measured at one value only."""
    section = raw.get("method", {})
    name = str(section.get("name", DEFAULT))
    if not is_method(name):
        return
    kind = method_type(name)
    own = [setting.knobs for setting in measured.settings if setting.method == kind.name]
    brought = {}
    for knob in kind.knobs():
        values = [item[knob.name] for item in own if item.get(knob.name) is not None]
        if values and values.count(values[0]) == len(own) and knob.name not in FREE_KNOBS:
            share = isinstance(values[0], float) and knob.unit == "%"
            brought[knob.name] = FRACTION.exact(values[0]) if share else values[0]
    raw["method"] = brought | {key: value for key, value in section.items() if value is not None or key not in brought}


def _graph(measured: MeasuredCompute) -> str:
    """The graph's file. Raises ScenarioError."""
    file = measured.graph.get("file")
    if file is None or not os.path.exists(file):
        raise ScenarioError(
            f"workload.graph: is not given, and {measured.path} says no file that is here; it was measured on "
            f"{measured.graph['name']} (hash {measured.graph['hash'][:12]}): give the file of this graph"
        )
    return str(file)


def _cluster(measured: MeasuredCompute) -> Mapping[str, Any]:
    device = gpu_named(measured.device["name"]) if measured.on_gpu else CORE
    return {"gpus": measured.parts} | ({} if device is None else {"device": device})


def _model(measured: MeasuredCompute) -> Mapping[str, Any]:
    """The model and the widths of the data, in scenario notation."""
    model = measured.model
    names = ("model", "layers", "hidden", "norm", "preaggregate")
    values = {name: model[name] for name in names if name in model}
    if values["model"] == "gat" and "heads" in model:
        values["heads"] = model["heads"]
    if "dropout" in model:
        values["dropout"] = FRACTION.exact(float(model["dropout"]))
        if model["dropout"] and "dropout_order" in model:
            values["dropout_order"] = model["dropout_order"]
    return values | {name: measured.graph[name] for name in ("features", "classes")}


def _partition(measured: MeasuredCompute) -> Mapping[str, Any]:
    cut = str(measured.partition["algorithm"]).partition("-")[0]
    section = {"method": cut} if cut in CUTS else {}
    return section | ({"seed": measured.partition["seed"]} if "seed" in measured.partition else {})
