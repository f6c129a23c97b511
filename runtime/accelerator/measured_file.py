"""Which measured times waits stand for: those of the run's GPU, model, method, knobs, graph and parts.

Staleness and cache change no kernel, so they are free. What else was not measured is refused, with the command that
measures it. Nothing here needs torch: the command line asks before anything starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from gcnsim.core.errors import ScenarioError, plural
from gcnsim.hardware import gpu_named
from gcnsim.records.compute_facts import MeasuredCompute, MeasuredSetting, first_gap, in_schedule_words, measure_command
from gcnsim.records.compute_reading import measured_compute
from runtime.methods import method_type
from runtime.options import Options, flag

OPTION: Final = "--measured-compute"
FREE: Final = ("tau", "cache", "cache_policy", "cold_start", "refresh")
"""Knobs that change no kernel: a look-up is scaled by its rows, a refresh is measured by itself."""

RATES: Final = ("epsilon", "rate")
"""Knobs that a command names whatever they are."""

OF_MODEL: Final = (
    *("model", "layers", "hidden", "norm", "bias", "dropout"),
    *("sage_mean", "preaggregate"),
)


def measured_setting(path: str, device: str, options: Options) -> MeasuredSetting:
    """The measured setting of a run with `options` on GPUs `device` of the catalogue, all of its parts.

    Raises FileError for a file that cannot be read, ScenarioError for what was not measured.
    """
    found = measured_compute(path)
    _refuse_device(found, device)
    knobs = options.asdict()["knobs"]
    if options.workers != found.parts:
        _refuse(found, options, f"the graph in {plural(options.workers, 'part')}", plural(found.parts, "part"))
    for name in OF_MODEL:
        own = getattr(options, name)
        if found.model.get(name, own) != own:
            _refuse(found, options, f"{flag(name)} {_text(own)}", _text(found.model[name]))
    alike = [
        setting
        for setting in found.settings
        if setting.method == options.method and _kernels_of(setting.knobs) == _kernels_of(knobs)
    ]
    if not alike:
        known = "; ".join(dict.fromkeys(_words(setting.method, setting.knobs) for setting in found.settings))
        _refuse(found, options, _words(options.method, knobs), known)
    chosen = min(alike, key=lambda setting: sum(setting.knobs.get(name) != knobs.get(name) for name in FREE))
    for rank, why in chosen.skipped.items():
        _refuse(found, options, f"part {rank}: {why}", f"the parts {', '.join(map(str, chosen.parts)) or 'of none'}")
    for rank, part in chosen.parts.items():
        if gap := first_gap(in_schedule_words(part, on_host=True), range(options.layers)):
            raise ScenarioError(f"{OPTION}: {path}: part {rank} has no {gap}; measure it again")
    return chosen


def refuse_other_graph(path: str, options: Options, graph_hash: str, owner_hash: str) -> None:
    """Raise ScenarioError where another graph was measured, or another partition of it."""
    found = measured_compute(path)
    for what, own, measured in (
        ("the graph", graph_hash, found.graph["hash"]),
        ("the partition", owner_hash, found.partition["hash"]),
    ):
        if own != measured:
            _refuse(found, options, f"{what} of hash {own[:12]}", f"that of hash {measured[:12]}")


def _refuse_device(found: MeasuredCompute, device: str) -> None:
    known = gpu_named(found.device["name"]) if found.on_gpu else None
    if not found.on_gpu or (known is not None and known != device):
        raise ScenarioError(
            f"{OPTION}: {found.path} was measured on {found.device['name']}, not on --accelerator {device}; allowed: "
            f"{f'--accelerator {known}' if known else 'times of a GPU'}"
        )


def _kernels_of(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs that kernels depend on."""
    return {name: value for name, value in knobs.items() if name not in FREE}


def _words(method: str, knobs: Mapping[str, Any]) -> str:
    own = [f"{name.replace('_', ' ')} {_text(value)}" for name, value in _kernels_of(knobs).items()]
    return f"{method} ({', '.join(own)})" if own else method


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _refuse(found: MeasuredCompute, options: Options, wanted: str, measured: str) -> NoReturn:
    plain, usual = options.asdict(), method_type(options.method).settled({})
    own = {name: value for name, value in _kernels_of(plain["knobs"]).items() if value is not None}
    knobs = {name: value for name, value in own.items() if name in RATES or value != usual[name]}
    question = {name: plain[name] for name in OF_MODEL if plain[name] != found.model.get(name)}
    command = measure_command(
        found, options.graph, parts=options.workers, method=options.method, knobs=knobs, **question
    )
    raise ScenarioError(f"{OPTION}: {found.path} has no times of {wanted}; measured: {measured}; measure it: {command}")
