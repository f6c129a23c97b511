"""One row of an answer: a method with one setting of its knobs on one machine, and what an iteration of it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from gcnsim.methods import has_knob, is_method
from gcnsim.units import bandwidth, format_gbps


@dataclass(frozen=True, slots=True)
class Row:
    """One method with one setting of its knobs on one cluster; seconds, bytes and fractions in [0, 1].

    bandwidth_bytes_per_s: of each server's network card, which plain data have as `bandwidth`, `15Gbps`.
    iteration_s_low, _high: the 90 % interval, None of CPU cores without a calibration, of which no error is known.
    limited_by: the resource without which the iteration would be shortest; limited_by_share: by how much, as a share of
    it; limited_by_kind_share: the same without all resources of its kind; limited_by_worker: whose it is, or who has
    most of it to do. vs_recommended_low, _high: 90 % of the paired difference to the recommended setting, as a
    share of that one's time; distinguishable: whether that leaves out 0. may_be_recommended: None of an answer that
    recommends nothing. currency: of the costs; price: by which price of an hour they are. host, gpus_per_server: of the
    servers, where rows differ in them. What an answer does not say is None or empty.
    """

    dataset: str
    device: str
    gpus: int
    bandwidth_bytes_per_s: float
    method: str
    tau: int
    epsilon: float
    rate: float
    cache_fraction: float
    iteration_s: float
    iteration_s_low: float | None
    iteration_s_high: float | None
    compute_s: float
    exposed_comm_s: float
    exposed_other_s: float
    hidden_comm_s: float
    sampling_s: float
    gpu_utilization: float
    nic_utilization: float
    cache_hit_rate: float
    nic_bytes: float
    speedup_vs_full_graph: float | None
    bottleneck: str
    iterations_per_epoch: int
    epoch_s: float
    setting: str
    memory_bytes: float | None = None
    fits: bool | None = None
    limited_by: str = ""
    limited_by_kind: str = ""
    limited_by_share: float | None = None
    limited_by_kind_share: float | None = None
    limited_by_worker: int | None = None
    usd_per_1000_iterations: float | None = None
    currency: str | None = None
    cost_per_hour: float | None = None
    cost_per_iteration: float | None = None
    cost_per_1000_iterations: float | None = None
    cost_per_epoch: float | None = None
    price: str | None = None
    host: str | None = None
    gpus_per_server: int | None = None
    may_be_recommended: bool | None = None
    excluded_because: str | None = None
    recommended: bool = False
    vs_recommended_low: float | None = None
    vs_recommended_high: float | None = None
    distinguishable: bool | None = None

    @property
    def nic_bytes_per_s(self) -> float:
        """Bytes that the busiest server's network card sends per second, mean over an iteration."""
        return self.nic_bytes / self.iteration_s

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Row:
        """The row that plain data tell, as `payload` writes them; keys that no row has are passed over.

        Raises TypeError where they lack a key that every row has.
        """
        limit, against = told.get("limited_by") or {}, told.get("vs_recommended") or {}
        cost = told.get("cost") or {}
        flat = {key: value for key, value in told.items() if key not in _NESTED} | {
            "limited_by": limit.get("text") or told.get("bottleneck", ""),
            "limited_by_kind": limit.get("kind", ""),
            "limited_by_share": limit.get("share"),
            "limited_by_kind_share": limit.get("kind_share"),
            "limited_by_worker": limit.get("worker"),
            "currency": cost.get("currency"),
            **{f"cost_{key}": cost.get(key) for key in _COSTS},
            "price": cost.get("price"),
            "vs_recommended_low": against.get("low"),
            "vs_recommended_high": against.get("high"),
            "distinguishable": against.get("distinguishable"),
        }
        if "bandwidth" in told:
            flat["bandwidth_bytes_per_s"] = bandwidth(flat.pop("bandwidth"))
        missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in flat]
        if missing:
            raise TypeError(f"a row lacks {', '.join(missing)}")
        return cls(**{key: flat[key] for key in KEYS if key in flat})

    def payload(self) -> dict[str, Any]:
        """The row as plain data, as the JSON schemas have it."""
        machine = {"dataset": self.dataset, "gpus": self.gpus, "bandwidth": format_gbps(self.bandwidth_bytes_per_s)}
        told = machine | {key: getattr(self, key) for key in _PLAIN}
        told |= {
            "limited_by": {
                "text": self.limited_by,
                "kind": self.limited_by_kind,
                "share": self.limited_by_share,
                "kind_share": self.limited_by_kind_share,
                "worker": self.limited_by_worker,
            },
            "usd_per_1000_iterations": self.usd_per_1000_iterations,
        } | self._cost()
        told |= {key: getattr(self, key) for key in _SERVER if getattr(self, key) is not None}
        if self.may_be_recommended is None:
            return told
        against = {
            "low": self.vs_recommended_low,
            "high": self.vs_recommended_high,
            "distinguishable": self.distinguishable,
        }
        return told | {
            "may_be_recommended": self.may_be_recommended,
            "excluded_because": self.excluded_because,
            "recommended": self.recommended,
            "vs_recommended": None if self.vs_recommended_low is None else against,
        }

    def _cost(self) -> dict[str, Any]:
        """The costs as plain data; nothing where no price is known."""
        if self.currency is None:
            return {}
        costs = {key: getattr(self, f"cost_{key}") for key in _COSTS}
        return {"cost": {"currency": self.currency, **costs, "price": self.price}}

    @property
    def knobs(self) -> tuple[str, ...]:
        """The knobs that its method has and that say anything, as words: `("tau 2", "eps 0.1")`."""
        return tuple(self.knob_words().values())

    def knob_words(self) -> dict[str, str]:
        """Per knob that tells this row from another setting of its method, its name and value in words."""
        # A cache of nothing is a knob that is not used; a tau of 0 or an epsilon of 1 is one that was set.
        known = is_method(self.method)
        told = {
            "tau": (self.tau > 0 or known, f"tau {self.tau}"),
            "epsilon": (self.epsilon < 1.0 or known, f"eps {self.epsilon:g}"),
            "rate": (self.rate < 1.0 or known, f"rate {self.rate:g}"),
            "cache": (self.cache_fraction > 0.0, f"cache {100 * self.cache_fraction:.4g}%"),
        }
        words = {name: text for name, (says, text) in told.items() if says and _has(self.method, name)}
        return words | ({"setting": self.setting} if self.setting else {})


NO_RANGE: Final = "CPU cores without a calibration"
"""Of what no 90 % interval is given."""

MEASURE_CORES: Final = "measure with python -m runtime.profile, then gcnsim calibrate"
"""What gives it one."""

KEYS: Final[tuple[str, ...]] = tuple(field.name for field in fields(Row))
"""The fields of a row: the machine first, then the keys of plain data in their order, what was nested made flat."""

_NESTED: Final = ("limited_by", "cost", "vs_recommended")
_COSTS: Final = ("per_hour", "per_iteration", "per_1000_iterations", "per_epoch")
_SERVER: Final = ("host", "gpus_per_server")
_PLAIN: Final = ("device", *KEYS[KEYS.index("method") : KEYS.index("limited_by")])
"""Keys that plain data have as they are after dataset, GPUs and bandwidth, up to what is nested, in their order."""


def _has(method: str, knob: str) -> bool:
    return not is_method(method) or has_knob(method, knob)
