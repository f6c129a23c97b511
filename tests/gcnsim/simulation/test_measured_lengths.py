"""Measured times in place of the laws': worked by hand, replayed, interpolated, refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.methods import create_method
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation import simulate_scenario, write_schedule
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import KIND_CODE, Direction, OpKind
from tests.measured_files import ITERATIONS, Setting, measured_file, write_graph

CORE = {"kind": "cpu", "name": "a core"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path)


def make_scenario(
    path: Path, graph: Path, method: str | Mapping[str, Any] = "full-graph", *overrides: str, **cluster: Any
) -> Scenario:
    named = {"name": method} if isinstance(method, str) else dict(method)
    raw = {"schema": "gcnsim.scenario/1", "cluster": {"measured_compute": str(path), **cluster}, "method": named}
    return from_mapping(raw | {"workload": {"graph": str(graph)}}, "test", overrides)


def demand_of(scenario: Scenario, kind: OpKind, layer: int = -1, way: Direction = Direction.NONE) -> FloatArray:
    """Seconds of these operations of worker 0, float64[T]."""
    source = open_source(scenario)
    schedule = write_schedule(scenario, source.counts(scenario, 16, RangeEnd.LIKELY), source)
    columns = schedule.columns
    own = (columns.kind == KIND_CODE[kind]) & (columns.worker == 0) & (columns.layer == layer)
    on_core = [name in ("gpu", "sampler", "f.pack") for name in columns.names]
    own &= (columns.direction == int(way)) & np.array(on_core)[columns.stream_name[columns.stream]]
    found: FloatArray = schedule.demand[:, own].sum(axis=1)
    return found


def test_the_iteration_of_one_gpu_is_the_sum_of_its_operations(tmp_path: Path, graph: Path) -> None:
    lengths = {"aggregate": 0.003, "update": 0.005, "loss": 0.002, "step": 0.004}
    path = measured_file(tmp_path, graph, seconds=lambda kind, *_: lengths[kind])
    result = simulate_scenario(make_scenario(path, graph))
    # Three sums, four maps, a loss forward and backward, a step.
    assert result.metrics.iteration_s == pytest.approx(3 * 0.003 + 4 * 0.005 + 2 * 0.002 + 0.004, rel=1e-9)


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
def test_the_iteration_of_one_gpu_is_the_measured_one_with_what_the_host_takes(
    tmp_path: Path, graph: Path, method: str
) -> None:
    values, outside = [0.001, 0.002, 0.004, 0.005], 0.0071
    settings = [(method, {"epsilon": 1.0} if method == "psc-gcn" else {})]
    path = measured_file(tmp_path, graph, 1, settings, lambda kind, layer, part, way, t: values[t], outside=outside)
    result = simulate_scenario(make_scenario(path, graph, {"name": method, **settings[0][1]}))
    # Ten operations on the main stream, and what is on none of them: the mean that the clock of the wall shows.
    assert result.metrics.iteration_s == pytest.approx(10 * np.mean(values) + outside, rel=1e-9)


def test_what_the_host_takes_is_in_the_step_of_each_gpu(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, outside=0.008)
    assert demand_of(make_scenario(path, graph), OpKind.STEP) == pytest.approx(0.018, rel=1e-9)


def test_copies_take_what_links_say(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import EXCHANGED, OPS, even, header, rows, write

    copies = [("d2h", 0, "forward"), ("h2d", 0, "forward"), ("d2h", 1, "backward"), ("h2d", 1, "backward")]
    times = []
    for more in ([], copies):
        about = header(graph, 2)
        path = write(tmp_path / f"{len(more)}.parquet", about, rows(about, even, [*OPS, *EXCHANGED, *more]))
        times.append(simulate_scenario(make_scenario(path, graph)).metrics.iteration_s)
    assert times[0] == times[1]


def test_two_gpus_wait_for_rows_over_the_network_of_the_question(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2)
    slow: dict[str, Any] = {"latency": "10ms", "gpus_per_server": 1, "transport": "staged"}
    fast, far = make_scenario(path, graph), make_scenario(path, graph, **slow)
    # Compute is measured, whatever the links; the wait is theirs.
    times = [simulate_scenario(scenario).metrics for scenario in (fast, far)]
    assert [time.compute_s for time in times] == pytest.approx([0.09, 0.09], rel=1e-6)
    assert times[1].iteration_s - times[0].iteration_s > 3 * 0.01


def test_the_slowest_part_decides(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, seconds=lambda kind, layer, part, way, t: 0.01 * (1 + part))
    assert simulate_scenario(make_scenario(path, graph)).metrics.compute_s == pytest.approx(0.18, rel=1e-6)


def test_a_mean_that_is_hardly_known_has_a_range_above_zero(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import even, header, rows, write

    about = header(graph, 2)
    for part in about["parts"]:
        part["relative_error"] = 2.0
    result = simulate_scenario(make_scenario(write(tmp_path / "m.parquet", about, rows(about, even)), graph))
    assert result.low_s == pytest.approx(result.metrics.iteration_s / 3.0, rel=0.05)
    assert result.high_s == pytest.approx(result.metrics.iteration_s * 3.0, rel=0.05)


def test_on_a_core_the_time_outside_operations_is_measured_too(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, device=CORE, outside=0.008)
    figures = {"generic-16.work_spread": 0.001}
    assert demand_of(make_scenario(path, graph, figures=figures), OpKind.STEP).mean() == pytest.approx(0.018, rel=1e-3)


def test_cores_are_as_fast_as_measured_whatever_else_is_busy(tmp_path: Path, graph: Path) -> None:
    """Where compute was measured beside busy cores, it is not slowed for them once more."""
    alone = measured_file(tmp_path, graph, 2, device=CORE | {"cores": 2, "beside": 0}, name="alone.parquet")
    path = measured_file(tmp_path, graph, 2, device=CORE | {"cores": 2, "beside": 1})
    times = [
        simulate_scenario(make_scenario(path, graph, figures={"generic-16.cores": 2, **more})).metrics.compute_s
        for more in ({}, {"generic-16.busy_core_rate": "100%"}, {"generic-16.busy_core_rate": "50%"})
    ]
    assert times[0] == pytest.approx(times[1])
    assert times[2] > 1.5 * times[1]  # the question says so
    slowed = simulate_scenario(make_scenario(alone, graph, figures={"generic-16.cores": 2})).metrics.compute_s
    assert slowed > 1.1 * times[0]


def test_a_sampler_keeps_no_thread_from_its_core(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, [("psc-gcn", {"epsilon": 0.5})], device=CORE)
    figures = {"generic-16.work_spread": 0.001}
    scenario = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.5}, figures=figures)
    assert demand_of(scenario, OpKind.STEP).mean() == pytest.approx(0.005, rel=1e-3)


def test_several_operations_of_a_schedule_share_the_time_of_one(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, device=CORE)
    seconds = demand_of(make_scenario(path, graph), OpKind.AGGREGATE, 0, Direction.FORWARD)
    assert seconds == pytest.approx(0.01)


def test_iterations_are_replayed_with_their_mean_and_spread(tmp_path: Path, graph: Path) -> None:
    values = [0.006, 0.010, 0.012, 0.016]
    path = measured_file(tmp_path, graph, seconds=lambda kind, layer, part, way, t: values[t])
    seconds = demand_of(make_scenario(path, graph), OpKind.UPDATE, 0, Direction.FORWARD)
    assert seconds.mean() == pytest.approx(np.mean(values), rel=1e-9)
    assert sorted(set(np.round(seconds, 9))) == pytest.approx(values)
    assert seconds.std() == pytest.approx(np.std(values), rel=1e-6)
    # Operations of one iteration stay together.
    step = demand_of(make_scenario(path, graph), OpKind.STEP)
    assert step == pytest.approx(seconds)
    steady = measured_file(tmp_path, graph, name="steady.parquet", seconds=lambda *_: float(np.mean(values)))
    varied, even = simulate_scenario(make_scenario(path, graph)), simulate_scenario(make_scenario(steady, graph))
    assert varied.metrics.iteration_s == pytest.approx(even.metrics.iteration_s, rel=1e-6)
    assert varied.high_s - varied.low_s > even.high_s - even.low_s


def test_more_replayed_iterations_than_measured_keep_the_mean(tmp_path: Path, graph: Path) -> None:
    settings = [("psc-gcn", {"epsilon": 0.5})]
    path = measured_file(tmp_path, graph, 2, settings, lambda kind, layer, part, way, t: 0.01 * (1 + t))
    scenario = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.5}, "run.iterations=30")
    seconds = demand_of(scenario, OpKind.STEP)
    assert seconds.size == 30
    assert ITERATIONS == 4  # so that 30 is no multiple of it
    assert seconds.mean() == pytest.approx(0.5 * 0.025, rel=1e-9)


def test_between_two_rates_times_follow_a_power_law(tmp_path: Path, graph: Path) -> None:
    # The helper's times are proportional to epsilon, which a power law has exactly.
    settings = [("psc-gcn", {"epsilon": 0.1}), ("psc-gcn", {"epsilon": 0.4})]
    path = measured_file(tmp_path, graph, 2, settings)
    scenario = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.2})
    assert demand_of(scenario, OpKind.UPDATE, 0, Direction.FORWARD).mean() == pytest.approx(0.002, rel=1e-9)
    measured = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.4})
    between, known = simulate_scenario(scenario), simulate_scenario(measured)
    assert between.high_s / between.metrics.iteration_s > known.high_s / known.metrics.iteration_s


def test_staleness_cache_and_overlap_are_free(tmp_path: Path, graph: Path) -> None:
    settings = [("psc-gcn", {"epsilon": 0.5, "tau": 1, "cache": "0%", "sampler": "uniform"})]
    path = measured_file(tmp_path, graph, 2, settings)
    for knobs in ({"tau": 0}, {"tau": 3}, {"cache": "30%"}, {"tau": 0, "overlap": "central"}):
        method = {"name": "psc-gcn", "epsilon": 0.5, "sampler": "uniform", **knobs}
        assert simulate_scenario(make_scenario(path, graph, method)).metrics.iteration_s > 0.04


REFUSED = [
    ("full-graph", ("cluster.gpus=3",), {}, "cluster.gpus: 3 is not what"),
    ("full-graph", ("workload.hidden=32",), {}, "workload.hidden: 32 is not what"),
    ("full-graph", ("workload.layers=3",), {}, "workload.layers: 3"),
    ("full-graph", ("partition.method=random",), {}, "partition: one of hash"),
    ("full-graph", ("cluster.payload=fp16",), {}, "cluster.payload: fp16 is not allowed with"),
    ("full-graph", ("cluster.implementation=released",), {}, "cluster.implementation: released is not allowed"),
    ("full-graph", (), {"device": "h100"}, "cluster.device: h100 is not what"),
    ("bns-gcn", (), {}, "method: bns-gcn"),
    ({"name": "psc-gcn", "epsilon": 0.6, "sampler": "uniform"}, (), {}, "method.epsilon: 0.6 is not what"),
]


@pytest.mark.parametrize(("method", "overrides", "cluster", "message"), REFUSED)
def test_what_was_not_measured_is_refused_with_the_command(
    tmp_path: Path, graph: Path, method: Any, overrides: tuple[str, ...], cluster: dict[str, Any], message: str
) -> None:
    settings: list[Setting] = [("full-graph", {}), ("psc-gcn", {"epsilon": 0.1, "sampler": "uniform"})]
    settings += [("psc-gcn", {"epsilon": 0.5, "sampler": "uniform"})]
    path = measured_file(tmp_path, graph, 2, settings)
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(make_scenario(path, graph, method, *overrides, **cluster))
    text = str(caught.value)
    assert text.startswith(message)
    assert str(path) in text or "measured_compute" in text
    assert "\n" not in text


def test_the_command_has_every_option_of_the_model(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2)
    asking = {"name": "psc-gcn", "epsilon": 0.3, "sampler": "vr"}
    scenario = make_scenario(path, graph, asking, "workload.hidden=64", "partition.method=random", "partition.seed=3")
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(scenario)
    command = str(caught.value).partition("measure it: ")[2]
    for option in ("python -m runtime.measure", f"--graph {graph}", "--parts 2", "--method psc-gcn", "--hidden 64",
                   "--layers 2", "--model gcn", "--norm none", "--dropout 0", "--device cuda", "--epsilon 0.3",
                   "--dtype float32",
                   "--partition-method random", "--partition-seed 3"):  # fmt: skip
        assert option in command


def test_cores_without_measured_times_are_refused_with_the_command(graph: Path) -> None:
    cluster = {"gpus": 2, "device": "cpu-core", "aggregator": "numba", "threads": 2}
    method = {"name": "psc-gcn", "tau": 1, "epsilon": 0.3}
    raw = {"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": {"graph": str(graph)}, "method": method}
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(from_mapping(raw, "test"))
    text = str(caught.value)
    assert text.startswith("cluster.measured_compute: null is not allowed on CPU cores (cpu-core)")
    assert "\n" not in text
    for option in ("python -m runtime.measure", f"--graph {graph}", "--parts 2", "--method psc-gcn", "--epsilon 0.3",
                   "--aggregator numba", "--threads 2", "--norm layer", "--out FILE"):  # fmt: skip
        assert option in text


def test_another_graph_is_refused_by_its_hash(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, graph={"hash": "0" * 64})
    with pytest.raises(ScenarioError, match=r"workload: .*ring\.txt \(hash"):
        simulate_scenario(make_scenario(path, graph))


def test_a_skipped_part_is_refused_with_its_reason(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import even, header, rows, write

    about = header(graph, 2)
    about["parts"] = about["parts"][:1]
    about["skipped"] = [{"setting": 0, "part": 1, "reason": "needs 20 GB of 16 GB"}]
    path = write(tmp_path / "m.parquet", about, rows(about, even))
    with pytest.raises(ScenarioError, match="no times of part 1 with full-graph: needs 20 GB of 16 GB"):
        simulate_scenario(make_scenario(path, graph))


def test_times_without_a_map_of_a_layer_are_refused(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import OPS, even, header, rows, write

    about = header(graph)
    path = write(tmp_path / "m.parquet", about, rows(about, even, [op for op in OPS if op[1] != 1]))
    with pytest.raises(ScenarioError, match="part 0 has no update of layer 1, forward"):
        simulate_scenario(make_scenario(path, graph))


def test_the_file_says_model_parts_and_device_where_the_question_does_not(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, graph={"file": str(graph)})
    raw = {"schema": "gcnsim.scenario/1", "cluster": {"measured_compute": str(path)}}
    scenario = from_mapping(raw | {"method": {"name": "full-graph"}}, "test")
    assert (scenario.cluster.gpus, scenario.cluster.device) == (2, "t4")
    workload = scenario.workload
    assert (workload.graph, workload.hidden, workload.features, workload.norm) == (str(graph), 8, 16, "none")
    unnamed = measured_file(tmp_path, graph, 2, name="unnamed.parquet")
    with pytest.raises(GcnsimError, match=r"workload\.graph: is not given, and .* says no file"):
        from_mapping({"schema": "gcnsim.scenario/1", "cluster": {"measured_compute": str(unnamed)}}, "test")


def test_a_method_that_was_measured_under_another_name_answers(tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, [("psc-gcn", {"epsilon": 1.0})])
    assert create_method("full-graph").epsilon == 1.0
    assert simulate_scenario(make_scenario(path, graph)).metrics.compute_s == pytest.approx(0.09, rel=1e-6)
    other = measured_file(tmp_path, graph, 2, [("pipegcn", {})], name="pipegcn.parquet")
    stale = make_scenario(other, graph, {"name": "psc-gcn", "tau": 2, "epsilon": 1.0})
    assert simulate_scenario(stale).metrics.compute_s == pytest.approx(0.09, rel=1e-6)
    with pytest.raises(ScenarioError, match="method: pipegcn-g is not what"):
        simulate_scenario(make_scenario(other, graph, "pipegcn-g"))
    with pytest.raises(ScenarioError, match=r"method: psc-gcn with tau 2 and epsilon 0\.5"):
        simulate_scenario(make_scenario(other, graph, {"name": "psc-gcn", "tau": 2, "epsilon": 0.5}))


def test_attention_and_dropout_on_cores_are_measured(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import EXCHANGED, OPS, even, header, rows, write

    model = {"model": "gat", "heads": 2, "dropout": 0.5}
    about = header(graph, 2, device=CORE, model=model)
    names = {"update": "attention"}
    ops = [(names.get(kind, kind), layer, way) for kind, layer, way in OPS if kind != "aggregate"]
    path = write(tmp_path / "m.parquet", about, rows(about, even, [*ops, *EXCHANGED]))
    scenario = make_scenario(path, graph)
    assert (scenario.workload.model, scenario.workload.heads, scenario.workload.dropout) == ("gat", 2, 0.5)
    # Four maps with their attention, and the loss forward and backward.
    assert simulate_scenario(scenario).metrics.compute_s == pytest.approx(0.06, rel=1e-3)
    with pytest.raises(ScenarioError, match=r"workload\.heads: 4 is not what .* --heads 4"):
        simulate_scenario(make_scenario(path, graph, "full-graph", "workload.heads=4"))


def test_look_ups_of_another_cache_are_scaled_by_their_rows(tmp_path: Path, graph: Path) -> None:
    from tests.measured_files import DRAWN, EXCHANGED, OPS, even, header, rows, write

    knobs = {"epsilon": 0.5, "cache": "30%", "sampler": "uniform"}
    about = header(graph, 2, [("psc-gcn", knobs)])
    ops = [*OPS, *EXCHANGED, *DRAWN, ("lookup", 0, "forward")]
    path = write(tmp_path / "m.parquet", about, rows(about, even, ops))
    scenario = make_scenario(path, graph, {"name": "psc-gcn", **knobs, "cache": "100%"})
    source = open_source(scenario)
    hits = source.counts(scenario, 16, RangeEnd.LIKELY).hits[:, 0].sum(axis=1).mean()
    # The helper says 4 rows looked up in the measured iteration, 5 ms long.
    assert hits > 4
    assert demand_of(scenario, OpKind.LOOKUP, 0, Direction.FORWARD).mean() == pytest.approx(0.005 * hits / 4)


@pytest.mark.parametrize(("cache", "seconds"), [("0%", 0.005), ("50%", 0.01)])
def test_of_a_rate_measured_with_and_without_a_cache_the_question_s_own_answers(
    cache: str, seconds: float, tmp_path: Path, graph: Path
) -> None:
    from tests.measured_files import even, header, rows, write

    settings: list[Setting] = [("psc-gcn", {"epsilon": 0.5, "cache": text}) for text in ("50%", "0%")]
    about = header(graph, 2, settings, device=CORE)
    columns = rows(about, even)
    # The first setting, with the cache, took twice as long.
    columns["seconds"] = [
        2 * item if setting == 0 else item for setting, item in zip(columns["setting"], columns["seconds"], strict=True)
    ]
    path = write(tmp_path / "m.parquet", about, columns)
    scenario = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.5, "cache": cache})
    assert demand_of(scenario, OpKind.AGGREGATE, 1, Direction.FORWARD).mean() == pytest.approx(seconds)


@pytest.mark.parametrize("refresh", [4, 8])
def test_probabilities_are_refreshed_as_often_as_the_question_says(tmp_path: Path, graph: Path, refresh: int) -> None:
    from tests.measured_files import header, rows, write

    knobs = {"epsilon": 0.5, "refresh": 16}
    about = header(graph, 2, [("psc-gcn", knobs)])
    for part in about["parts"]:
        part["refreshing"] = [2]
    columns = rows(about, lambda kind, layer, part, way, t: 0.2 if t == 2 else 0.02)
    path = write(tmp_path / "m.parquet", about, columns)
    scenario = make_scenario(path, graph, {"name": "psc-gcn", "epsilon": 0.5, "refresh": refresh}, "run.iterations=40")
    seconds = demand_of(scenario, OpKind.UPDATE, 0, Direction.FORWARD)
    assert seconds == pytest.approx(np.where(np.arange(seconds.size) % refresh == 0, 0.1, 0.01))
