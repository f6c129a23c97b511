"""The additional fields of a what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcnsim.scenario.option import LIST, REPEATABLE, Some, option
from gcnsim.scenario.question import Question
from gcnsim.scenario.specs import COARSE_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf(Question):
    """The question of `gcnsim.what_if`. scenario: a file or plain data to start from; the other fields replace its
    fields.
    """

    scenario: str | Path | Mapping[str, Any] | None = field(default=None, kw_only=False)
    ids: str | None = option(
        "Node ids in an edge list: numbers, compact (integers with gaps, to be renumbered), or names",
        "workload.ids",
        choice=True,
        after="graph",
    )
    gpus_per_server: Some[int] | None = option(
        "GPUs in a server; the last server holds the remainder", "cluster.gpus_per_server", many=LIST, after="gpus"
    )
    calibration: str | Path | None = option(
        "Calibration record of your machine (from gcnsim calibrate)", "cluster.calibration", after="host"
    )
    allow: Some[str] | None = option(
        "Methods that may be recommended",
        "method.name",
        many=LIST,
        names=("all",),
        default="those of --method",
        after="method",
    )
    rate: Some[float | str] | None = option(
        "Share of boundary nodes that is drawn (bns-gcn)",
        "method.rate",
        many=LIST,
        noun="a share (0.1 or 10%)",
        after="cache",
    )
    batch: Some[int] | None = option(
        "Training nodes in a worker's mini-batch", "method.batch", many=LIST, default="1024", after="rate"
    )
    fanout: Some[str] | None = option(
        "Neighbours drawn per node in each layer, the input's first, e.g. 5,10,15",
        "method.fanout",
        many=REPEATABLE,
        metavar="N,N,...",
        default="10,25 of two layers, 5,10,15 of three",
        after="batch",
    )
    cache_policy: str | None = option(
        "Which rows are cached: inclusion (likeliest to be needed), degree or random",
        "method.cache_policy",
        after="fanout",
    )
    norms: str | Path | None = option(
        "Node norms from a training run; variance-reduced sampling uses them", "method.norms", after="cache_policy"
    )
    measured: Some[str] = option(
        "Compare your measurement with the prediction: 640ms, or the path of a run or trace",
        value=(),
        many=REPEATABLE,
        metavar="[METHOD=]TIME",
        after="processes",
    )
    partition_seeds: int = option(
        "Try this many METIS seeds on your own graph", value=0, kind="whole", after="measured"
    )
    payload: str | None = option(
        "Number format of boundary rows in messages: fp16, bf16, int8, int4 or int2",
        "cluster.payload",
        after="partition_seeds",
    )
    fidelity: str | None = option(
        "How shared links are simulated: exact or coarse",
        "run.fidelity",
        default=f"{{}}, coarse from {COARSE_FROM} GPUs",
        after="payload",
    )
    implementation: str | None = option(
        "lean: ideal code; released: adds the overheads of the papers' code",
        "cluster.implementation",
        after="fidelity",
    )
    inject: Sequence[str] = option(
        "Fault to inject, e.g. pause:worker=0,seconds=2s",
        value=(),
        many=REPEATABLE,
        metavar="KIND:...",
        after="transport",
    )
