"""Where the sampler on the host decides, and what would change that."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.planning.alternatives import (
    cores_used,
    gpu_sampler,
    host_steps,
    more_cores,
    more_sampler_threads,
    sampler_decides,
    why_cores_do_not_matter,
)
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation import simulate_scenario


def scenario(method: dict[str, Any] | None = None, **cluster: Any) -> Scenario:
    machine = {"gpus": 2, "bandwidth": "15Gbps"} | cluster
    requested = {
        "schema": SCHEMA,
        "cluster": machine,
        "method": method or {"name": "psc-gcn"},
        "run": {"iterations": 4},
    }
    return from_mapping(requested, "test")


def iteration_s(base: Scenario) -> float:
    return simulate_scenario(base).metrics.iteration_s


def test_where_the_sampler_decides_more_threads_or_the_gpu_help_and_cores_do_not() -> None:
    base = scenario(device="a100-40")
    now = simulate_scenario(base)
    text = sampler_decides(now.limit, base)
    assert text is not None
    assert text.startswith("at the stated values the host's CPU sampler decides")
    assert "sampling uses 2 of a server's 16 cores" in text
    assert iteration_s(more_cores(base)) == now.metrics.iteration_s
    assert iteration_s(more_sampler_threads(base)) < 0.3 * now.metrics.iteration_s
    on_gpu = simulate_scenario(gpu_sampler(base))
    assert on_gpu.metrics.iteration_s < 0.3 * now.metrics.iteration_s
    assert sampler_decides(on_gpu.limit, gpu_sampler(base)) is None


def test_where_samplers_outnumber_cores_more_of_them_help() -> None:
    base = scenario(gpus=4, gpus_per_server=4, device="a100-40", figures="generic-16.cores=1")
    assert cores_used(base) == (4, 1)
    assert why_cores_do_not_matter(base) is None
    assert resolve_machine(more_cores(base).cluster).host.cores.value == 2
    assert iteration_s(more_cores(base)) < 0.7 * iteration_s(base)


def test_sampling_on_the_gpu_takes_its_time_and_is_named() -> None:
    # Recomputing the probabilities every iteration sorts every entry: nothing else takes as long.
    base = gpu_sampler(scenario({"name": "psc-gcn", "tau": 0, "epsilon": 0.01, "refresh": 1}, bandwidth="400Gbps"))
    result = simulate_scenario(base)
    assert result.metrics.sampling_s > 0.4 * result.metrics.iteration_s
    assert result.limit.text == "sampling on the GPU of all workers"
    assert result.limit.kind == "sampling"
    assert sampler_decides(result.limit, base) is None


@pytest.mark.parametrize(
    ("base", "knobs"),
    [
        (scenario(), ["host cores", "sampler threads", "sampler"]),
        (scenario({"name": "full-graph"}), ["host cores"]),
        (scenario({"name": "distdgl"}), ["host cores", "sampler threads", "sampler"]),
        (scenario({"name": "dgl"}, gpus_per_server=2), ["host cores"]),
        (
            scenario({"name": "dgl"}, gpus_per_server=2, sampler_device="cpu"),
            ["host cores", "sampler threads", "sampler"],
        ),
        (scenario({"name": "psc-gcn", "epsilon": 1}), ["host cores"]),
        (scenario(sampler_device="gpu"), ["host cores"]),
        (scenario(device="cpu-core"), ["host cores"]),
    ],
    ids=str,
)
def test_only_steps_that_change_something_are_offered(base: Scenario, knobs: list[str]) -> None:
    steps = host_steps(base)
    assert [step.knob for step in steps] == knobs
    assert all(step.scenario != base for step in steps)
    assert (steps[0].start, steps[0].end) == (16, 32)


def test_a_scenario_with_the_usual_sampler_is_written_as_before() -> None:
    plain = scenario()
    assert not {"sampler_device", "sampler_threads"} & set(to_mapping(plain)["cluster"])
    assert scenario_hash(scenario(sampler_device=None, sampler_threads=None)) == scenario_hash(plain)
    assert iteration_s(scenario(sampler_device="cpu", sampler_threads=1)) == iteration_s(plain)
    chosen = scenario(sampler_threads=4)
    assert to_mapping(chosen)["cluster"]["sampler_threads"] == 4
    assert from_mapping(to_mapping(chosen), "again") == chosen


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"sampler_device": "tpu"}, "cluster.sampler_device: unknown device of samplers 'tpu'"),
        (
            {"sampler_device": "gpu", "sampler_threads": 4},
            "cluster.sampler_threads: 4 needs cluster.sampler_device: cpu",
        ),
        ({"sampler_threads": 0}, "cluster.sampler_threads: 0 is not allowed"),
        (
            {"sampler_device": "gpu", "device": "cpu-core"},
            "cluster.measured_compute: null is not allowed on CPU cores",
        ),
    ],
)
def test_samplers_that_cannot_be_are_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(scenario(**question))
    assert message in str(caught.value)


def test_a_method_without_this_sampler_refuses_it() -> None:
    with pytest.raises(ScenarioError, match=r"cluster\.sampler_device: not modelled with roc"):
        simulate_scenario(scenario({"name": "roc"}, sampler_device="gpu"))


@pytest.mark.parametrize(
    ("threads", "words"),
    [
        (1, "uses 2 of a server's 16 cores (1 thread per worker)"),
        (4, "uses 8 of a server's 16 cores (4 threads per worker)"),
    ],
)
def test_the_threads_that_draw_are_counted(threads: int, words: str) -> None:
    text = why_cores_do_not_matter(scenario(sampler_threads=threads))
    assert text is not None
    assert text.endswith(words)
