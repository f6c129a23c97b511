"""One row of an answer: a method with one setting of its knobs on one machine, and what an iteration of it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from gcnsim.core.ids import Bytes, Rank, Seconds
from gcnsim.core.shapes import (
    INSIDE,
    JUDGED,
    KEY,
    NIC_BANDWIDTH,
    NULL,
    OMIT_IF_NONE,
    Amount,
    Currency,
    OneOrMore,
    Positive,
    SamplingRate,
    SentShare,
    Share,
    Staleness,
    Text,
    by_field,
)
from gcnsim.core.units import bandwidth, format_gbps
from gcnsim.methods import has_knob, is_method
from gcnsim.results.column import Column, Form, Table, When, column
from gcnsim.results.row_objects import COST, DIFFERENCE, LIMIT

_JUDGED: Final[Mapping[str, Any]] = {JUDGED: True}
"""Metadata of a field that exists only if there is a recommended setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method with one setting of its knobs on one machine; of the slowest worker, mean over the measured
    iterations. iteration_s = compute_s + exposed_comm_s + exposed_other_s.

    Unknown values are None or empty.
    """

    dataset: Text = column("dataset", "The dataset, or the file of the graph.", Form.TEXT, Table.USUAL, When.DIFFERS)
    host: Text | None = column(
        "host",
        "The server, by its name in the catalogue.",
        Form.TEXT,
        Table.USUAL,
        When.DIFFERS,
        default=None,
        json=OMIT_IF_NONE,
    )
    """Only if rows differ in host or GPUs per server."""
    gpus: OneOrMore = column(
        "GPUs", "Number of GPUs, one part of the graph each.", Form.NUMBER, Table.USUAL, When.DIFFERS
    )
    gpus_per_server: OneOrMore | None = column(
        "GPUs per\nserver",
        "GPUs in one server; the last may hold fewer.",
        Form.NUMBER,
        Table.USUAL,
        When.DIFFERS,
        brief="GPUs/\nserver",
        default=None,
        json=OMIT_IF_NONE,
    )
    """Only if rows differ in host or GPUs per server."""
    device: Text = column(
        "device",
        "The GPU, by its name in the catalogue; if servers differ, one after the other, separated by commas.",
        Form.TEXT,
        Table.USUAL,
        When.DIFFERS,
    )
    bandwidth_bytes_per_s: float = column(
        "bandwidth",
        "Bandwidth of each server's network card.",
        Form.TEXT,
        Table.USUAL,
        When.DIFFERS,
        brief="band-\nwidth",
        key="bandwidth",
        json=NIC_BANDWIDTH,
    )
    """Bandwidth of each server's network card, with its unit: 15Gbps."""
    method: Text = column("method", "The training method that is simulated.", Form.TEXT, Table.USUAL)
    tau: Staleness = column(
        "tau",
        "Staleness: age, in iterations, of the boundary rows that an iteration reads; 0: it waits for current rows.",
        Form.NUMBER,
        Table.ASKED,
        also=Column(
            "knobs",
            "The knobs of the method that identify the setting; those that all rows share are in the heading.",
            Form.KNOBS,
            Table.USUAL,
            usual=24,
            key="knobs",
        ),
        explained=True,
    )
    epsilon: SamplingRate = column(
        "eps",
        "Sampling rate: the expected share of each node's edges that an iteration draws.",
        Form.NUMBER,
        Table.ASKED,
        explained=True,
    )
    rate: SentShare = column(
        "rate",
        "Share of the boundary nodes that an iteration draws and sends (p of BNS-GCN).",
        Form.NUMBER,
        Table.ASKED,
        explained=True,
    )
    cache_fraction: Share = column(
        "cache",
        "Share of a worker's boundary nodes whose input features its GPU keeps.",
        Form.PERCENT,
        Table.ASKED,
        explained=True,
    )
    setting: str = column(
        "other\nknobs", "Knobs without a column of their own, if they differ from the default.", Form.WORDS, Table.ASKED
    )
    iteration_s: Positive = column(
        "{unit} per\niteration",
        "Time of one iteration on the slowest worker, mean over the measured iterations. It is the sum of compute, "
        "exposed communication and the rest.",
        Form.SECONDS,
        Table.ASKED,
        also=Column(
            "{unit} per iteration\n(range)",
            "Time of one iteration on the slowest worker, mean over the measured iterations, and its 90 % interval.",
            Form.TIME,
            Table.USUAL,
            brief="{unit} per iter.\n(range)",
            key="time",
        ),
    )
    iteration_s_low: Positive | None
    """Low end of the 90 % interval. Null where it was not asked for."""
    iteration_s_high: Positive | None = column(
        "low-high\n{unit}", "The 90 % interval of the iteration time.", Form.ENDS, Table.ASKED, key="interval"
    )
    """High end of the interval."""
    iterations_per_epoch: OneOrMore = column(
        "iterations\nper epoch",
        "Iterations in which every training node is used once: 1 if each iteration uses all of them.",
        Form.NUMBER,
        Table.WIDE,
        When.BATCHES,
    )
    epoch_s: Positive = column(
        "{unit} per\nepoch",
        "Time of one epoch, which may have several iterations.",
        Form.SECONDS,
        Table.USUAL,
        When.BATCHES,
    )
    speedup_vs_full_graph: Positive | None = column(
        "speed-up",
        "Time of a full-graph iteration divided by the time of this epoch, on the same cluster; -: unknown.",
        Form.TIMES,
        Table.USUAL,
        brief="speed\nup",
        keep=2,
        explained=True,
    )
    known_loss: float | None = column(
        "accuracy\nlost",
        "Points of test accuracy behind full-graph training, as measured on other graphs; the most of any of them, 0: "
        "none beyond the spread of seeds, -: not known. Accuracy is not predicted.",
        Form.NUMBER,
        Table.USUAL,
        brief="acc.\nlost",
        keep=3,
        default=None,
        json=OMIT_IF_NONE,
        explained=True,
    )
    compute_s: Seconds = column(
        "compute\n{unit}",
        "Time the GPU spends on aggregation, layer updates and loss, forward and backward.",
        Form.SECONDS,
        also=Column(
            "compute|\nwaiting %",
            "Percentage of the iteration in which the slowest worker's GPU computes, and in which it waits for "
            "communication; the rest is sampling, optimizer and all else.",
            Form.SHARES,
            Table.USUAL,
            brief="comp|\nwait %",
            keep=5,
            key="shares",
        ),
    )
    exposed_comm_s: Seconds = column(
        "exposed\ncomm {unit}",
        "Communication that overlaps with no other work: the iteration waits for it.",
        Form.SECONDS,
    )
    hidden_comm_s: Seconds = column(
        "hidden\ncomm {unit}",
        "Communication that runs at the same time as other work. It costs bandwidth but no time.",
        Form.SECONDS,
    )
    exposed_other_s: Seconds = column(
        "other\n{unit}",
        "Sampling, optimizer and everything else that is neither computation nor exposed communication.",
        Form.SECONDS,
    )
    sampling_s: Seconds = column(
        "sample\n{unit}",
        "Time spent on drawing the sample and looking rows up in the cache, hidden or not.",
        Form.SECONDS,
    )
    bottleneck: Text
    limited_by: Text = column(
        "limited by",
        "The resource that would shorten the iteration most if it were infinitely fast.",
        Form.WORDS,
        Table.USUAL,
        keep=3,
        usual=26,
        default="",
        json=LIMIT.at("text"),
    )
    limited_by_kind: Text = field(default="", metadata=LIMIT.at("kind"))
    limited_by_share: Share | None = field(default=None, metadata=LIMIT.at("share"))
    """Share of the iteration that would be saved if this resource were infinitely fast."""
    limited_by_kind_share: Share | None = field(default=None, metadata=LIMIT.at("kind_share", null=True, late=True))
    """The same for all resources of its kind; null in answers of version 0.1."""
    limited_by_worker: Rank | None = field(default=None, metadata=LIMIT.at("worker", null=True))
    """The worker that owns the resource, or has the most work on it; null if no worker does."""
    memory_bytes: Bytes | None = column(
        "{unit}\nper GPU",
        "Peak memory of the worker that is nearest to its GPU's limit; !: it does not fit.",
        Form.MEMORY,
        Table.USUAL,
        brief="{unit}/\nGPU",
        keep=1,
        default=None,
    )
    fits: bool | None = None
    """Whether this fits its GPU; null if unknown."""
    gpu_utilization: Share = column(
        "GPU\nbusy", "Busy compute time over iteration time, mean over the GPUs.", Form.SHARE
    )
    nic_utilization: Share = column(
        "NIC\nbusy", "Share of the time that the busiest direction of the busiest network card is in use.", Form.SHARE
    )
    cache_hit_rate: Share = column(
        "cache\nhits", "Share of the boundary rows needed at the input layer that the cache holds.", Form.SHARE
    )
    nic_bytes: Bytes = column(
        "NIC\n{unit}",
        "Bytes sent per iteration by the busiest server's network card.",
        Form.BYTES,
        also=Column(
            "NIC\n{unit}",
            "Bytes sent per second by the busiest server's network card, mean over an iteration.",
            Form.BYTE_RATE,
            key="nic_bytes_per_s",
        ),
    )
    currency: Currency | None = field(default=None, metadata=COST.at("currency"))
    cost_per_hour: Amount | None = column(
        "USD per\nhour",
        "Price of the machine per hour, in US dollars.",
        Form.MONEY,
        Table.ASKED,
        default=None,
        json=COST.at("per_hour"),
    )
    cost_per_iteration: Amount | None = column(
        "USD per\niteration",
        "Price of one iteration.",
        Form.MONEY,
        Table.ASKED,
        default=None,
        json=COST.at("per_iteration"),
    )
    cost_per_1000_iterations: Amount | None = column(
        "USD per\n1,000 iter.",
        "Price of 1,000 iterations on rented machines, in US dollars.",
        Form.MONEY,
        Table.USUAL,
        brief="$ per\n1k it",
        keep=4,
        default=None,
        json=COST.at("per_1000_iterations"),
    )
    cost_per_epoch: Amount | None = column(
        "USD per\nepoch",
        "Price of an epoch, in which every training node is used once.",
        Form.MONEY,
        Table.ASKED,
        default=None,
        json=COST.at("per_epoch"),
    )
    price: Text | None = field(default=None, metadata=COST.at("price"))
    """The hourly price behind the costs."""
    price_of: Text | None = field(default=None, metadata=COST.at("of", null=True, late=True))
    """The instance whose price per GPU that is, if the machine's servers are no such instances; null if they are."""
    may_be_recommended: bool | None = field(default=None, metadata={**_JUDGED, NULL: False})
    excluded_because: str | None = field(default=None, metadata=_JUDGED)
    """Why it may not be recommended; null if it may."""
    recommended: bool = field(default=False, metadata=_JUDGED)
    vs_recommended_low: float | None = column(
        "against\nrecommended",
        "How much longer (+) or shorter (-) than the recommended setting: the 90 % interval of the paired difference; "
        "`=`: no clear difference.",
        Form.DIFFERENCE,
        key="vs_recommended",
        default=None,
        json={**_JUDGED, **DIFFERENCE.at("low")},
    )
    """90 % interval, low end."""
    vs_recommended_high: float | None = field(default=None, metadata={**_JUDGED, **DIFFERENCE.at("high")})
    """90 % interval, high end."""
    distinguishable: bool | None = field(default=None, metadata={**_JUDGED, **DIFFERENCE.at("distinguishable")})
    """Whether the interval excludes zero."""

    @property
    def bandwidth(self) -> str:
        """The bandwidth of each server's network card in network units: `15Gbps`."""
        return format_gbps(self.bandwidth_bytes_per_s)

    @property
    def nic_bytes_per_s(self) -> float:
        """Bytes that the busiest server's network card sends per second, mean over an iteration."""
        return self.nic_bytes / self.iteration_s

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Row:
        """The row of plain data as written by `payload`; unknown keys are ignored.

        Raises TypeError if a required key is missing.
        """
        flat = dict(data)
        for entry in fields(cls):
            if group := entry.metadata.get(INSIDE):
                flat[entry.name] = (data.get(group.key) or {}).get(entry.metadata[KEY], entry.default)
        flat["limited_by"] = flat["limited_by"] or data.get("bottleneck", "")
        if "bandwidth" in data:
            flat["bandwidth_bytes_per_s"] = bandwidth(flat.pop("bandwidth"))
        missing = [entry.name for entry in fields(cls) if entry.default is MISSING and entry.name not in flat]
        if missing:
            raise TypeError(f"a row lacks {', '.join(missing)}")
        return cls(**{key: flat[key] for key in KEYS if key in flat})

    def payload(self) -> dict[str, Any]:
        """The row as plain data, as the JSON schemas have it."""
        data = by_field(self)
        if self.may_be_recommended is None:
            return {key: value for key, value in data.items() if key not in _BESIDE}
        return data

    @property
    def knobs(self) -> tuple[str, ...]:
        """The informative knobs of its method as words: `("tau 2", "eps 0.1")`."""
        return tuple(self.knob_words().values())

    def knob_words(self) -> dict[str, str]:
        """Knobs that distinguish this row from other settings of its method: name and value in words."""
        # A cache of nothing is a knob that is not used; a tau of 0 or an epsilon of 1 is one that was set.
        known = is_method(self.method)
        values = {
            "tau": (self.tau > 0 or known, f"tau {self.tau}"),
            "epsilon": (self.epsilon < 1.0 or known, f"eps {self.epsilon:g}"),
            "rate": (self.rate < 1.0 or known, f"rate {self.rate:g}"),
            "cache": (self.cache_fraction > 0.0, f"cache {100 * self.cache_fraction:.4g}%"),
        }
        words = {name: text for name, (says, text) in values.items() if says and _has(self.method, name)}
        return words | ({"setting": self.setting} if self.setting else {})


KEYS: Final[tuple[str, ...]] = tuple(entry.name for entry in fields(Row))
"""The fields of a row, which are the keys of plain data, flattened."""

_BESIDE: Final = frozenset(
    entry.metadata[INSIDE].key if INSIDE in entry.metadata else entry.name
    for entry in fields(Row)
    if JUDGED in entry.metadata
)
"""The keys that exist only if there is a recommended setting."""


def _has(method: str, knob: str) -> bool:
    return not is_method(method) or has_knob(method, knob)
