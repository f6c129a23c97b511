"""The setting of a question, a row or a measured run, field by field, so that two of them can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import GcnsimError
from gcnsim.core.units import BANDWIDTH, FRACTION, format_gbps
from gcnsim.evidence.recorded_run import device_of
from gcnsim.hardware import gpu_of
from gcnsim.records.recorded_run import RecordedRun
from gcnsim.results import Row

ASIDE: Final = ("schema", "name", "asked", "grid", "run.iterations")
"""Fields of a scenario that do not change machine, workload or method."""

UNSET: Final = "unset"
"""A field that one scenario gives and the other omits."""

OF_A_ROW: Final = ("tau", "epsilon", "rate")


def facts_of(scenario: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a scenario as plain data, by path."""
    return dict(_flat(scenario, ""))


def _flat(mapping: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in mapping.items():
        inside = f"{path}{key}"
        if inside in ASIDE:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{inside}.")
        else:
            yield inside, _text(value)


def facts_of_row(scenario: Mapping[str, Any], row: Row) -> dict[str, str]:
    """The fields of a what-if row: its machine and method replace the first one's."""
    shared = {name: value for name, value in facts_of(scenario).items() if not name.startswith("method.")}
    place = {"gpus": row.gpus, "bandwidth": format_gbps(row.bandwidth_bytes_per_s), "device": row.device}
    machine = {f"cluster.{name}": _text(value) for name, value in place.items()}
    knobs = {f"method.{name}": _text(getattr(row, name)) for name in OF_A_ROW}
    return shared | machine | {"method.name": row.method} | knobs


def facts_of_run(run: RecordedRun) -> dict[str, str]:
    """The fields of a recorded run that a scenario of it would have, and its graph's name."""
    options, widths = run.options, run.widths
    found: dict[str, Any] = {
        "graph": f"{run.graph['name']} ({run.graph['hash'][:8]})",
        "cluster.gpus": run.workers,
        "cluster.device": device_of(run),
        "workload.model": options["model"],
        "workload.layers": len(widths) - 1,
        "workload.features": widths[0],
        "workload.hidden": widths[1],
        "workload.classes": widths[-1],
        "workload.norm": options["norm"],
        "method.name": options["method"],
        "method.overlap": options["overlap"],
    }
    if run.place is not None:
        found["cluster.gpus_per_server"] = run.place["workers_per_host"]
        found["cluster.bandwidth"] = BANDWIDTH.exact(float(run.place["bandwidth"]))
    dropped = float(options.get("dropout", 0.0))
    found["workload.dropout"] = FRACTION.exact(dropped)
    if dropped:
        found["workload.dropout_order"] = options["dropout_order"]
    found |= {f"method.{name}": value for name, value in options["knobs"].items()}
    return {name: _text(value) for name, value in found.items()}


def facts_of_profile(workers: int, devices: Sequence[str], path: Path) -> dict[str, str]:
    """The fields in a profiler trace: the number of workers, and the GPU if every trace names one.

    devices: of each worker, e.g. "GPU 0 Tesla T4".
    """
    found = {"cluster.gpus": str(workers)}
    names = [" ".join(device.split()[2:]) for device in devices]
    if names and all(names):
        try:
            found["cluster.device"] = gpu_of(names, str(path))
        except GcnsimError:
            found["cluster.device"] = ", ".join(dict.fromkeys(names))
    return found


def differing(a: Mapping[str, str], b: Mapping[str, str], *, alike: bool) -> list[dict[str, str]]:
    """The fields in which two sides differ.

    alike: both are scenarios, so that fields that one omits are reported too.
    """
    names = {**a, **b} if alike else {name: None for name in a if name in b}
    pairs = ((name, a.get(name, UNSET), b.get(name, UNSET)) for name in names)
    return [{"field": name, "a": one, "b": other} for name, one, other in pairs if one != other]


def _text(value: Any) -> str:
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        # A fault in the syntax of --inject; a file may omit its kind.
        pairs = ",".join(f"{key}={_text(item)}" for key, item in value.items() if key != "kind")
        return f"{_text(value.get('kind'))}:{pairs}"
    return "; ".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)
