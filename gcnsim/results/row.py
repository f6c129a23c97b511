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
    Nested,
    OneOrMore,
    Positive,
    SamplingRate,
    SentShare,
    Share,
    Staleness,
    Text,
    by_field,
)
from gcnsim.core.units import bandwidth
from gcnsim.methods import has_knob, is_method

LIMIT: Final = Nested(
    "limited_by",
    "The resource without which the iteration would be shortest: its work takes no time then, everything else stays as "
    "it is.",
)
COST: Final = Nested(
    "cost", "Costs in the currency asked for, and by which price of an hour; absent where none is known.", "omitted"
)
DIFFERENCE: Final = Nested(
    "vs_recommended",
    "Epoch time over that of the recommended setting, less one, under the same draws of the assumptions; null for that "
    "setting itself.",
    "null",
)


_JUDGED: Final[Mapping[str, Any]] = {JUDGED: True}
"""Metadata of a field that exists only if there is a recommended setting."""


@dataclass(frozen=True, slots=True)
class Row:
    """One method with one setting of its knobs on one machine; of the slowest worker, mean over the measured
    iterations. iteration_s = compute_s + exposed_comm_s + exposed_other_s.

    Unknown values are None or empty.
    """

    dataset: Text
    """Name of the dataset or graph."""
    device: Text
    """Device of every server; if servers differ, one after the other, separated by commas."""
    gpus: OneOrMore
    bandwidth_bytes_per_s: float = field(metadata=NIC_BANDWIDTH)
    """Bandwidth of each server's network card, with its unit: 15Gbps."""
    method: Text
    tau: Staleness
    epsilon: SamplingRate
    rate: SentShare
    cache_fraction: Share
    iteration_s: Positive
    """Seconds per iteration."""
    iteration_s_low: Positive | None
    """Low end of the 90 % interval. Null where it was not asked for."""
    iteration_s_high: Positive | None
    """High end of the interval."""
    compute_s: Seconds
    """Aggregation, layer updates and loss, forward and backward."""
    exposed_comm_s: Seconds
    """Communication that the iteration waits for."""
    exposed_other_s: Seconds
    """Sampling, optimizer and everything else."""
    hidden_comm_s: Seconds
    """Communication that overlaps with other work."""
    sampling_s: Seconds
    """Drawing the sample and looking rows up in the cache, hidden or not."""
    gpu_utilization: Share
    """Busy compute time over iteration time, mean over the GPUs."""
    nic_utilization: Share
    """Share of the time that the busiest direction of the busiest network card is in use."""
    cache_hit_rate: Share
    """Share of the boundary rows needed at the input layer that the cache holds."""
    nic_bytes: Bytes
    """Bytes sent per iteration by the busiest server NIC."""
    speedup_vs_full_graph: Positive | None
    """Full-graph iteration time divided by epoch_s; null if full-graph training cannot be predicted."""
    bottleneck: Text
    iterations_per_epoch: OneOrMore
    """Model updates in which every training node is used once; 1 except with mini-batches."""
    epoch_s: Positive
    """Seconds of that many iterations."""
    setting: str
    """Knobs without a field of their own, if they differ from the default."""
    memory_bytes: Bytes | None = None
    """Peak memory of the worker that is nearest its GPU's limit; null for methods without a formula for it."""
    fits: bool | None = None
    """Whether this fits its GPU; null if unknown."""
    limited_by: Text = field(default="", metadata=LIMIT.at("text"))
    limited_by_kind: Text = field(default="", metadata=LIMIT.at("kind"))
    limited_by_share: Share | None = field(default=None, metadata=LIMIT.at("share"))
    """Share of the iteration that would be saved if this resource were infinitely fast."""
    limited_by_kind_share: Share | None = field(default=None, metadata=LIMIT.at("kind_share", null=True, late=True))
    """The same for all resources of its kind; null in answers of version 0.1."""
    limited_by_worker: Rank | None = field(default=None, metadata=LIMIT.at("worker", null=True))
    """The worker that owns the resource, or has the most work on it; null if no worker does."""
    usd_per_1000_iterations: Amount | None = None
    """US dollars per 1,000 iterations on rented GPUs, at the lowest known price; null if none is known."""
    currency: Currency | None = field(default=None, metadata=COST.at("currency"))
    cost_per_hour: Amount | None = field(default=None, metadata=COST.at("per_hour"))
    cost_per_iteration: Amount | None = field(default=None, metadata=COST.at("per_iteration"))
    cost_per_1000_iterations: Amount | None = field(default=None, metadata=COST.at("per_1000_iterations"))
    cost_per_epoch: Amount | None = field(default=None, metadata=COST.at("per_epoch"))
    price: Text | None = field(default=None, metadata=COST.at("price"))
    """The hourly price behind the costs."""
    price_of: Text | None = field(default=None, metadata=COST.at("of", null=True, late=True))
    """The instance whose price per GPU that is, if the machine's servers are no such instances; null if they are."""
    host: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    """Host of the servers; only if rows differ in host or GPUs per server."""
    gpus_per_server: OneOrMore | None = field(default=None, metadata=OMIT_IF_NONE)
    """GPUs in one server (the last may hold fewer); only if rows differ in host or GPUs per server."""
    may_be_recommended: bool | None = field(default=None, metadata={**_JUDGED, NULL: False})
    excluded_because: str | None = field(default=None, metadata=_JUDGED)
    """Why it may not be recommended; null if it may."""
    recommended: bool = field(default=False, metadata=_JUDGED)
    vs_recommended_low: float | None = field(default=None, metadata={**_JUDGED, **DIFFERENCE.at("low")})
    """90 % interval, low end."""
    vs_recommended_high: float | None = field(default=None, metadata={**_JUDGED, **DIFFERENCE.at("high")})
    """90 % interval, high end."""
    distinguishable: bool | None = field(default=None, metadata={**_JUDGED, **DIFFERENCE.at("distinguishable")})
    """Whether the interval excludes zero."""

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
            data = {key: value for key, value in data.items() if key not in _BESIDE}
        return {key: data[key] for key in _MACHINE} | data

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
"""The fields of a row: first the machine, then the keys of plain data in order, flattened."""

_MACHINE: Final = ("dataset", "gpus", "bandwidth", "device")
"""The keys of plain data that come first, in their order."""

_BESIDE: Final = frozenset(
    entry.metadata[INSIDE].key if INSIDE in entry.metadata else entry.name
    for entry in fields(Row)
    if JUDGED in entry.metadata
)
"""The keys that exist only if there is a recommended setting."""


def _has(method: str, knob: str) -> bool:
    return not is_method(method) or has_knob(method, knob)
