"""The scenario of a recorded run: the same cluster, model, method and accesses, to be predicted.

The access trace must belong to the run; otherwise another graph or partition would be predicted unnoticed. In emulated
runs, workers wait as long as a GPU would take; the record of the accelerator adds fields of the cluster and faults.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, plural
from gcnsim.core.units import BANDWIDTH, FRACTION, NBYTES, SECONDS, format_seconds
from gcnsim.hardware import CORE, PLAIN, CoreKernels, device, figures_of, gpu_of
from gcnsim.methods import NO_OVERLAP, create_method, is_method, method_type
from gcnsim.records.compute_facts import MeasuredCompute, measure_command
from gcnsim.records.recorded_run import TRACE, RecordedRun
from gcnsim.scenario import DIRECT, SCHEMA, STAGED, Scenario, from_mapping
from gcnsim.simulation.model import ATTENDS
from gcnsim.trace import AccessTrace, BatchTrace, read_batch_trace, read_trace
from gcnsim.workload.draws import NODES
from gcnsim.workload.knobs import WARM_ITERATIONS, Knob


def refuse_other_trace(run: RecordedRun, scenario: Scenario) -> None:
    """Raise ScenarioError, naming the trace, unless graph, parts and samples match those of `run`.

    scenario: the question to the simulator. Raises FileError for an unreadable trace.
    """
    if not run.trace.exists():
        name = f"allowed: a run that has it (older ones need --save-trace {run.path / TRACE} in training)"
        raise FileError(f"{run.trace}: no access trace of the run; {name}")
    if scenario.method.mini_batches:
        found = [*_other_batches(run, read_batch_trace(run.trace))]
    else:
        trace = read_trace(run.trace)
        found = [*_elsewhere(run, trace), *_drawn_otherwise(run, trace, scenario)]
    for wrong in found:
        raise ScenarioError(f"{run.trace}: {wrong}; allowed: the trace of {run.path}")


def _other_batches(run: RecordedRun, trace: BatchTrace) -> Iterator[str]:
    """Graph, workers, method and seed of mini-batches."""
    origin = trace.origin
    if origin.graph_hash != run.graph["hash"]:
        yield f"is of the graph {origin.graph_hash[:12]}, the run of {run.graph['hash'][:12]}"
    if trace.workers != run.workers:
        yield f"has {plural(trace.workers, 'worker')}, the run {run.workers}"
    for name, found in (("method", origin.method), ("seed", origin.seed)):
        if found != run.options[name]:
            yield f"was drawn with {name} {found}, the run with {run.options[name]}"


def _elsewhere(run: RecordedRun, trace: AccessTrace) -> Iterator[str]:
    """Graph and parts."""
    origin = trace.origin
    if origin.graph_hash != run.graph["hash"]:
        yield f"is of the graph {origin.graph_hash[:12]}, the run of {run.graph['hash'][:12]}"
    if trace.parts != run.workers:
        yield f"has {plural(trace.parts, 'worker')}, the run {run.workers}"
    if origin.partition_method != run.partition["method"]:
        yield f"is of a partition by {origin.partition_method}, the run of one by {run.partition['method']}"
    for name, found, wanted in (
        ("inner", trace.inner_nodes.tolist(), run.inner),
        ("boundary", trace.boundary_nodes.tolist(), run.boundary),
    ):
        for rank, (one, other) in enumerate(zip(found, wanted, strict=False)):
            if one != other:
                yield f"has {one} {name} nodes of worker {rank}, the run {other}"


def _drawn_otherwise(run: RecordedRun, trace: AccessTrace, scenario: Scenario) -> Iterator[str]:
    """Sampler, rate and seed."""
    origin, (sampler, rate) = trace.origin, scenario.method.sampling().drawn_by
    if (origin.sampler, origin.epsilon) != (sampler, rate):
        knob = "rate" if origin.sampler == NODES else "epsilon"
        yield f"was drawn with {origin.sampler} at {knob} {origin.epsilon:g}, the run with {sampler} at {rate:g}"
    if not scenario.method.sampling().whole and origin.seed != run.options["seed"]:
        yield f"was drawn with seed {origin.seed}, the run with {run.options['seed']}"


HOST: Final = "generic-16"
TRAINED_ON: Final = ("cpu", "cuda")
PERCENT: Final = "%"
WARMUP: Final = "warmup"
"""The knob of a method that sends everything in the first iterations: their share of all."""


def scenario_of(run: RecordedRun, calibration: str | None = None, measured: Sequence[MeasuredCompute] = ()) -> Scenario:
    """What to ask the simulator so that it predicts `run`; calibration: the record to predict with.

    measured: files of compute times, of which the one of the run's graph and parts answers; of a run whose workers
    waited, the one that they waited for, or none. Raises ScenarioError, naming the run, for what the simulator has no
    model of, and where none of `measured` is of its graph and parts.
    """
    _refuse(run)
    place = run.place
    cluster: dict[str, Any] = {
        "gpus": run.workers,
        "gpus_per_server": run.workers if place is None else place["workers_per_host"],
        "device": device_of(run),
        "host": HOST,  # a record says no other
        "shared_cores": run.emulation is not None and run.accelerator is None,
        "calibration": calibration,
        "measured_compute": found.path if (found := _measured_for(run, measured)) else None,
    }
    if place is not None:
        cluster["bandwidth"] = BANDWIDTH.exact(float(place["bandwidth"]))
        if place["latency_s"]:
            cluster["latency"] = SECONDS.exact(float(place["latency_s"]))
    if device_of(run) == CORE:
        kernels = kernels_of(run)
        cluster |= {"aggregator": kernels.aggregator, "threads": kernels.threads}
    else:
        # Rows use gloo, on GPUs through pinned host memory, unless a run used NCCL.
        cluster["transport"] = DIRECT if run.options.get("backend") == "nccl" else STAGED
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


class NotMeasuredError(ScenarioError):
    """A run on CPU cores, of whose graph and parts no compute times were given."""


MEASURED: Final = "measured"
"""The default folder of `python -m runtime.measure --runs`."""


def refuse_unmeasured(runs: Sequence[RecordedRun], files: Sequence[MeasuredCompute]) -> None:
    """Raise NotMeasuredError if `files` lack compute times of a run on cores.

    The message has the recorded iteration, which needs no prediction, and the command that measures all such runs.
    """
    lacking = [run for run in runs if run.accelerator is None and device_of(run) == CORE and not _of_parts(run, files)]
    if not lacking:
        return
    first = lacking[0]
    what = f"{first.graph['name']} in {plural(first.workers, 'part')} is in none of the measured files"
    where = what if files else "it ran on CPU cores, whose compute is measured, never assumed"
    words = [word for run in lacking for word in ("--runs", str(run.path))]
    raise NotMeasuredError(
        f"{first.path}: {format_seconds(first.iteration_s)} an iteration measured; not predicted: {where}; "
        f"measure it: {shlex.join(['python', '-m', 'runtime.measure', *words])} "
        f"--out {MEASURED}, then --measured-compute {MEASURED}; or --measure-now"
    )


def _of_parts(run: RecordedRun, files: Sequence[MeasuredCompute]) -> list[MeasuredCompute]:
    """The files of the run's graph and parts."""
    own = run.graph["hash"], run.partition["hash"]
    return [file for file in files if (file.graph["hash"], file.partition["hash"]) == own]


def _measured_for(run: RecordedRun, files: Sequence[MeasuredCompute]) -> MeasuredCompute | None:
    """The file of the run's graph and parts; of several the one nearest in model, then method, then training.

    None without files, and of waits as long as the cost laws say. Raises ScenarioError where files lack the run's;
    what else is not as it was measured is refused when it is simulated.
    """
    if run.accelerator is not None:
        return _waited_for(run, run.accelerator, files)
    if not files:
        return None
    alike = _of_parts(run, files)
    if not alike:
        raise ScenarioError(
            f"{run.path}: {run.graph['name']} in {run.workers} parts is in none of the measured files; measure it: "
            + measure_command(files[0], None, parts=run.workers, method=run.options["method"])
        )

    def unlike(options: Mapping[str, Any]) -> int:
        return sum(value != run.options[name] for name, value in options.items() if name in run.options)

    return min(
        alike,
        key=lambda measured: (
            unlike(measured.model),
            run.options["method"] not in measured.methods,
            unlike(measured.training),
        ),
    )


def _waited_for(
    run: RecordedRun, accelerator: Mapping[str, Any], files: Sequence[MeasuredCompute]
) -> MeasuredCompute | None:
    """The file whose times the workers waited; None where they were the laws'. Raises ScenarioError without it."""
    own = accelerator.get("measured_sha256")
    found = next((file for file in files if file.sha256 == own), None)
    if own is not None and found is None:
        raise ScenarioError(
            f"{run.path}: its kernels took the times in {accelerator['measured_compute']}; allowed: with that file "
            "(--measured-compute)"
        )
    return found


def device_of(run: RecordedRun) -> str:
    """The catalogue device that `run` was trained on.

    Raises ScenarioError, naming the run, for several kinds of GPUs or one missing from the catalogue.
    """
    if run.accelerator is not None:
        return str(run.accelerator["name"])
    return gpu_of(run.hardware["gpus"], str(run.path)) if run.options["device"] == "cuda" else CORE


def _refuse_crowds(run: RecordedRun) -> None:
    """Raise ScenarioError for multi-threaded workers with fewer cores than threads."""
    cluster, cores = run.cluster, int(run.hardware["cores"])
    beside = run.workers if cluster is None or run.emulation is not None else cluster.workers_per_host
    if run.threads > 1 and beside * run.threads > cores:
        raise ScenarioError(
            f"{run.path}: {beside} workers of {run.threads} threads each on {cores} cores; more threads than cores are "
            "not modelled (train with --threads 1)"
        )


def kernels_of(run: RecordedRun) -> CoreKernels:
    """What workers on cores computed with."""
    return CoreKernels(run.options.get("aggregator", PLAIN), run.threads)


def _dropout(run: RecordedRun) -> dict[str, Any]:
    """The dropout of a run on cores or GPUs; emulated waits have the simulator's length anyway."""
    share = float(run.options.get("dropout", 0.0))
    if run.accelerator is not None:
        return {}
    order = {"dropout_order": run.options["dropout_order"]} if share else {}
    return {"dropout": FRACTION.exact(share), **order}


def _method(run: RecordedRun) -> dict[str, Any]:
    name = run.options["method"]
    stored = run.options["knobs"]
    knobs = method_type(name).knobs() if is_method(name) else ()
    own = {knob.name: _written(knob, stored[knob.name]) for knob in knobs if knob.name in stored}
    if WARM_ITERATIONS.name in stored and any(knob.name == WARMUP for knob in knobs):
        own[WARMUP] = FRACTION.exact(_warm(run, int(stored[WARM_ITERATIONS.name])))
    method = create_method(name, **{knob: own[knob] for knob in ("tau",) if knob in own})
    # A softmax needs all entries of a row, so it overlaps no transfer.
    overlap = NO_OVERLAP if run.options["model"] == ATTENDS else run.options["overlap"]
    return {"name": name, "overlap": method.overlapping(overlap).overlap, **own}


def _written(knob: Knob, value: Any) -> Any:
    """`value` in the notation of a question; a percentage has its unit."""
    return FRACTION.exact(value) if knob.unit == PERCENT and isinstance(value, float) else value


def _warm(run: RecordedRun, warm: int) -> float:
    """The share of the measured iterations (the run's last) that are among its first `warm`."""
    measured = run.iterations.size
    return float(min(1.0, max(0.0, (warm - (run.options["iterations"] - measured)) / measured)))


def _refuse(run: RecordedRun) -> None:
    options = run.options
    hidden = set(run.widths[1:-1])
    if len(hidden) > 1:
        raise ScenarioError(f"{run.path}: has hidden layers of {len(hidden)} widths; allowed: one width for all")
    name = options["method"]
    if device_of(run) == CORE and is_method(name) and not method_type(name).supports_cpu:
        raise ScenarioError(f"{run.path}: trained with method {name} on CPU cores, which is modelled for GPUs only")
    if device_of(run) == CORE and run.accelerator is None:
        _refuse_crowds(run)
    modelled_as: dict[str, tuple[object, ...]] = {"device": TRAINED_ON, "dtype": ("float32",)}
    if run.accelerator is not None:
        modelled_as["dropout"] = (0.0,)
    for name, modelled in modelled_as.items():
        if options.get(name) not in modelled:
            raise ScenarioError(
                f"{run.path}: trained with {name} {options.get(name)}, which the simulator does not model; "
                f"allowed: {', '.join(map(str, modelled))}"
            )


NETWORK, LOCAL = "ethernet", "host-memory"


def accelerated_cluster(run: RecordedRun) -> dict[str, Any]:
    """Cluster fields from a run's accelerator: hosts, PCIe switches, measured network rates.

    Empty if workers computed. Raises ScenarioError if the device's figures have changed since the run.
    """
    accelerator, emulation = run.accelerator, run.emulation
    if accelerator is None or emulation is None:
        return {}
    _refuse_changed(run, accelerator)
    figures: dict[str, Any] = {}
    if emulation["measured"]:
        figures[f"{NETWORK}.efficiency"] = FRACTION.exact(min(emulation["measured"] / emulation["bandwidth"], 1.0))
    if accelerator.get("queue"):
        figures[f"{NETWORK}.queue"] = NBYTES.exact(accelerator["queue"])
    message_s = accelerator.get("message_s") or 0.0
    figures[f"{accelerator['host']}.message_s"] = SECONDS.exact(message_s)
    if accelerator.get("local_latency_s") is not None:
        figures[f"{LOCAL}.latency_s"] = SECONDS.exact(accelerator["local_latency_s"])
    # Waits assume that copies run at the rate of PCIe.
    figures[f"{accelerator['host']}.staging_bandwidth"] = "1000GB/s"
    found: dict[str, Any] = {"host": accelerator["host"], "figures": figures}
    if accelerator.get("latency_s") is not None:
        # For a small message, from the call at one end to the call at the other.
        found["latency"] = SECONDS.exact(max(accelerator["latency_s"] - 2 * message_s, 0.0))
    if accelerator.get("gpus_per_switch"):
        found |= {"pcie_sharing": "switch", "gpus_per_switch": accelerator["gpus_per_switch"]}
    return found


def accelerated_faults(run: RecordedRun) -> list[dict[str, Any]]:
    """The slow worker and the background traffic of a run, as a scenario's faults."""
    accelerator = run.accelerator or {}
    found: list[dict[str, Any]] = []
    if accelerator.get("slow_worker") is not None:
        found.append({"kind": "slow-gpu", "worker": accelerator["slow_worker"], "factor": accelerator["slow_factor"]})
    if accelerator.get("background"):
        rate = BANDWIDTH.exact(accelerator["background"])
        found += [{"kind": "background", "link": link, "rate": rate} for link in ("nic0.tx", "nic1.rx")]
    return found


def _refuse_changed(run: RecordedRun, accelerator: Any) -> None:
    found = {name: figure.value for name, figure in figures_of(device(accelerator["name"])).items()}
    for name, value in (accelerator.get("figures") or {}).items():
        if found.get(name) != value:
            raise ScenarioError(
                f"{run.path}: waits are by {accelerator['name']}.{name} {value:g}, which is {found.get(name)} here; "
                "allowed: the figures that the run was made with"
            )
