"""What each option of a run may be: its ends are allowed, what lies beyond them is refused with the range."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.caching import CacheSize
from runtime.options import CHOICES, Options, flag

RANGES: dict[str, tuple[float, float]] = {
    "workers": (1, 4096),
    "iterations": (1, 10**9),
    "seed": (0, 2**31 - 1),
    "partition_seed": (0, 2**31 - 1),
    "layers": (1, 1000),
    "hidden": (1, 10**6),
    "heads": (1, 1024),
    "dropout": (0, 0.999),
    "lr": (0, 10**6),
    "weight_decay": (0, 10**6),
    "feature_dim": (1, 10**6),
    "random_features": (1, 10**6),
    "random_classes": (2, 10**6),
    "threads": (1, 4096),
    "eval_every": (0, 10**9),
    "checkpoint_every": (0, 10**9),
    "timeout": (1, 24 * 3600),
    "warmup": (0, 10**9),
}


def made(**fields: Any) -> Options:
    return Options(**fields)


@pytest.mark.parametrize("name", sorted(RANGES))
def test_a_number_lies_in_its_range_ends_included(name: str) -> None:
    low, high = RANGES[name]
    for value in (low, high):
        assert getattr(made(**{name: value}), name) == value
    text = f"--{name.replace('_', '-')}: .* is not (allowed; )?a (whole )?number of at least {low} and at most {high}$"
    for value in (
        low - 1,
        high + 1,
        math.nextafter(low, -math.inf),
        math.nextafter(high, math.inf),
        math.inf,
        math.nan,
    ):
        with pytest.raises(ScenarioError, match=text):
            made(**{name: value})


def test_every_number_of_a_run_has_a_range() -> None:
    numbers = {name for name, value in Options().asdict().items() if isinstance(value, int | float)}
    assert numbers - {"record", "overwrite", "json", "json_log", "quiet", "bias", "preaggregate"} <= set(RANGES)


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_a_choice_is_one_of_its_words(name: str) -> None:
    needs: dict[str, dict[str, Any]] = {"backend": {"device": "cuda"}}
    more = needs.get(name, {})
    for word in CHOICES[name]:
        assert getattr(made(**more | {name: word}), name) == word
    with pytest.raises(ScenarioError, match=f"^{flag(name)}: unknown 'neither'; "):
        made(**{name: "neither"})


def test_nccl_needs_gpus() -> None:
    assert Options(device="cuda", backend="nccl").backend == "nccl"
    with pytest.raises(ScenarioError, match="--backend: nccl needs --device cuda, it is cpu"):
        Options(backend="nccl")


def test_compiled_kernels_need_cpus() -> None:
    assert Options(aggregator="numba").aggregator == "numba"
    with pytest.raises(
        ScenarioError, match="--aggregator: numba sums on CPUs, --device is cuda; allowed: plain, dgl, auto"
    ):
        Options(aggregator="numba", device="cuda")


def test_heads_of_attention_divide_the_width() -> None:
    assert Options(model="gat", hidden=6, heads=3).heads == 3
    assert Options(model="gcn", hidden=6, heads=4).heads == 4
    with pytest.raises(ScenarioError, match="--heads: 4 does not divide --hidden 6"):
        Options(model="gat", hidden=6, heads=4)


def test_attention_has_nothing_to_aggregate_once() -> None:
    assert Options(model="graphsage", preaggregate=True).preaggregate
    with pytest.raises(ScenarioError, match="--preaggregate: gat has no fixed first aggregation"):
        Options(model="gat", preaggregate=True)


def test_options_are_plain_json_values_and_sizes_are_as_written() -> None:
    plain = Options(knobs={"cache": CacheSize(fraction=0.3), "tau": 2}).asdict()
    assert plain["knobs"] == {"cache": "30%", "tau": 2}
    assert plain["iterations"] == 200
