"""The additional fields of a recommendation: targets, and the settings to choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.core.fields import Number
from gcnsim.core.units import DOLLARS
from gcnsim.scenario.option import Some, option, reworded
from gcnsim.scenario.question import Question, read_chance, read_quantity, read_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommend(Question):
    """The question of `gcnsim.recommend`."""

    OWN_FIRST: ClassVar[bool] = True

    minimise: str = option("What to minimise: cost, gpus or time", value="cost")
    target_iteration: str | None = option("An iteration takes at most this, e.g. 0.5s", own=read_time, metavar="TIME")
    target_epoch: str | None = option("An epoch takes at most this", own=read_time, metavar="TIME")
    target_hours: str | None = option(
        "The whole training run takes at most this, e.g. 10h", own=read_time, metavar="TIME"
    )
    confidence: float | str | None = option(
        "Lowest accepted chance of meeting the target", own=read_chance, metavar="SHARE", default="90%"
    )
    budget: str | None = option("The machine costs at most this, e.g. 500USD/month, 10USD/hour", metavar="PRICE")
    hours_per_day: float | None = option(
        "Hours of use per day, for a --budget per day, month or year", kind="real", default="24"
    )
    max_cost: str | None = option(
        "The whole training run costs at most this, e.g. 100USD", own=read_quantity(DOLLARS), metavar="AMOUNT"
    )
    limit: int = option(
        "Examine at most this many settings; if there are more, Optuna selects which",
        value=5000,
        own=Number(True, 1).read,
        kind="whole",
        after="seed",
    )
    gpus_per_server: int | None = option(
        "GPUs in a server (with --device), or how many GPUs of an instance to use",
        "cluster.gpus_per_server",
        default="",
        after="bandwidth",
    )
    gpus: Some[int] | None = reworded(
        Question,
        "gpus",
        "Numbers of GPUs to choose from",
        default="up to four whole instances, at most 32 GPUs; 2,4,8,16 with --device or --bandwidth",
    )
    device: Some[str] | None = reworded(
        Question, "device", "Types of GPU to choose from, instead of cloud instances", default=""
    )
    host: Some[str] | None = reworded(
        Question,
        "host",
        "Cloud instances to choose from: names in the catalogue, or files",
        default="all that have a price",
    )
    bandwidth: Some[str] | None = reworded(
        Question, "bandwidth", "Bandwidths to choose from, with --device", default=None
    )
    tau: Some[int] | None = reworded(Question, "tau", "Values of tau to choose from", default="0 to 2")
    epsilon: Some[float | str] | None = reworded(
        Question, "epsilon", "Sampling rates to choose from", default="0.1 to 1"
    )
    cache: Some[str | float] | None = reworded(Question, "cache", "Cache sizes to choose from", default="0%,10%,30%")
    target_accuracy: float | str | None = reworded(
        Question, "target_accuracy", "Validation accuracy to reach, e.g. 90%"
    )
