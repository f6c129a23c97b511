"""The scenario of a recorded run: the same cluster, model, method and accesses, to be predicted."""

from __future__ import annotations

from typing import Any, Final

from gcnsim.errors import GcnsimError, ScenarioError
from gcnsim.evidence.accelerated import accelerated_cluster, accelerated_faults
from gcnsim.hardware import gpu_of
from gcnsim.knobs import WARM_ITERATIONS, Knob
from gcnsim.methods import NO_OVERLAP, create_method, is_method, method_type
from gcnsim.runs.recorded_run import RecordedRun
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.sources.model import ATTENDS
from gcnsim.units import BANDWIDTH, FRACTION, SECONDS

CORE: Final = "cpu-core"
TRAINED_ON: Final = ("cpu", "cuda")
PERCENT: Final = "%"
WARMUP: Final = "warmup"
"""The knob of a method that sends everything in the first iterations: which share of all they are."""


def scenario_of(run: RecordedRun, calibration: str | None = None) -> Scenario:
    """What to ask the simulator so that it predicts `run`; calibration: the record to predict with.

    Raises ScenarioError, naming the run, for what the simulator has no model of.
    """
    _refuse(run)
    place = run.place
    cluster: dict[str, Any] = {
        "gpus": run.workers,
        "gpus_per_server": run.workers if place is None else place["workers_per_host"],
        "device": device_of(run),
        "shared_cores": run.emulation is not None and run.accelerator is None,
        "calibration": calibration,
    }
    if place is not None:
        cluster["bandwidth"] = BANDWIDTH.exact(float(place["bandwidth"]))
        if place["latency_s"]:
            cluster["latency"] = SECONDS.exact(float(place["latency_s"]))
    cluster |= accelerated_cluster(run)
    method = _method(run)
    widths = run.widths
    mapping: dict[str, Any] = {
        "schema": SCHEMA,
        "name": "run",
        "cluster": cluster,
        "workload": {
            "trace": str(run.trace),
            "model": run.options["model"],
            "layers": len(widths) - 1,
            "hidden": widths[1] if len(widths) > 2 else widths[0],
            "features": widths[0],
            "classes": widths[-1],
            "norm": run.options["norm"],
            "preaggregate": run.options["preaggregate"],
            **_dropout(run),
            **({"heads": run.options["heads"]} if run.options["model"] == "gat" else {}),
        },
        "method": method,
        "run": {"seed": run.options["seed"]},
        **({"faults": faults} if (faults := accelerated_faults(run)) else {}),
    }
    try:
        return from_mapping(mapping, str(run.path))
    except GcnsimError as error:
        raise ScenarioError(f"{run.path}: {error}") from None


def device_of(run: RecordedRun) -> str:
    """The device of the catalogue that `run` was trained on.

    Raises ScenarioError, naming the run, for GPUs of several kinds or one that the catalogue does not have.
    """
    if run.accelerator is not None:
        return str(run.accelerator["name"])
    return gpu_of(run.hardware["gpus"], str(run.path)) if run.options["device"] == "cuda" else CORE


def _dropout(run: RecordedRun) -> dict[str, Any]:
    """What a run on cores or GPUs dropped; waits in the place of a GPU are as long as the simulator says anyhow."""
    share = float(run.options.get("dropout", 0.0))
    if run.accelerator is not None:
        return {}
    order = {"dropout_order": run.options["dropout_order"]} if share else {}
    return {"dropout": FRACTION.exact(share), **order}


def _method(run: RecordedRun) -> dict[str, Any]:
    name = run.options["method"]
    given = run.options["knobs"]
    knobs = method_type(name).knobs() if is_method(name) else ()
    own = {knob.name: _written(knob, given[knob.name]) for knob in knobs if knob.name in given}
    if WARM_ITERATIONS.name in given and any(knob.name == WARMUP for knob in knobs):
        own[WARMUP] = FRACTION.exact(_warm(run, int(given[WARM_ITERATIONS.name])))
    asked = create_method(name, **{knob: own[knob] for knob in ("tau",) if knob in own})
    # A softmax needs all entries of a row, so attention sums nothing beneath transfers.
    overlap = NO_OVERLAP if run.options["model"] == ATTENDS else run.options["overlap"]
    return {"name": name, "overlap": asked.overlapping(overlap).overlap, **own}


def _written(knob: Knob, value: Any) -> Any:
    """`value` as a question writes it: a share of one that is given in percent has its unit."""
    return FRACTION.exact(value) if knob.unit == PERCENT and isinstance(value, float) else value


def _warm(run: RecordedRun, warm: int) -> float:
    """The share of the measured iterations, the run's last, that are among its first `warm`."""
    measured = run.iterations.size
    return float(min(1.0, max(0.0, (warm - (run.options["iterations"] - measured)) / measured)))


def _refuse(run: RecordedRun) -> None:
    options = run.options
    hidden = set(run.widths[1:-1])
    if len(hidden) > 1:
        raise ScenarioError(f"{run.path}: has hidden layers of {len(hidden)} widths; allowed: one width for all")
    name = options["method"]
    if device_of(run) == CORE and is_method(name) and not method_type(name).on_cores:
        raise ScenarioError(f"{run.path}: trained with method {name} on CPU cores, which is modelled for GPUs only")
    # A thread more or less matters where threads compute, and calibrations measure plain torch's sums.
    cores = {"threads": (1,), "aggregator": ("plain",)}
    on_cores = cores if device_of(run) == CORE else {}
    modelled_as: dict[str, tuple[object, ...]] = {
        "device": TRAINED_ON,
        **on_cores,
        "dtype": ("float32",),
        "sage_aggregator": ("mean",),
    }
    if run.accelerator is not None:
        modelled_as["dropout"] = (0.0,)
    # By default the number of threads is the machine's to say: the record tells what it was.
    options = {"aggregator": "plain", "sage_aggregator": "mean", **options, "threads": run.threads}
    for name, modelled in modelled_as.items():
        if options.get(name) not in modelled:
            hint = " (by default a worker has its share of the cores; train with --threads 1)"
            raise ScenarioError(
                f"{run.path}: trained with {name} {options.get(name)}, which the simulator does not model; "
                f"allowed: {', '.join(map(str, modelled))}{hint if name == 'threads' else ''}"
            )
