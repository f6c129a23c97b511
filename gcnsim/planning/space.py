"""The settings of a question: axes, each a field of a scenario with its values. Every combination is a setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from gcnsim.core.units import format_gbps
from gcnsim.methods import NO_OVERLAP, OVERLAP, Method, create_method, method_type
from gcnsim.scenario import ClusterSpec, Scenario, rule_at
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import KNOBS

MACHINES: Final = "cluster"
"""The axis of machines. It has whole clusters, because a host brings a device and a network of its own."""

METHODS: Final = "method.name"
ANY_OVERLAP: Final = f"method.{OVERLAP}"
"""The axis of the work that overlaps synchronous transfers; it has one value, for every setting that waits for some."""

WHERE: Final = {
    "gpus": "gpus",
    "bandwidths": "bandwidth",
    "devices": "device",
    "hosts": "host",
    "gpus_per_server": "gpus_per_server",
}
"""Fields of machines whose values an answer states, by their keys in it."""

REPORTED: Final = {"taus": "tau", "epsilons": "epsilon", "caches": "cache", "rates": "rate"}
"""Knobs whose values an answer states even where nobody asked for them, by their keys in it."""


@dataclass(frozen=True, slots=True)
class Space:
    """Settings: every method on every machine, with every combination of the values of its knobs.

    base: what no axis varies. axes: the values of each field by its path, as the field's rule reads them; a knob is an
    axis of the methods that have it. optional: methods that a comparison leaves out if they are not supported; then
    all methods are compared, each with its variants.
    """

    base: Scenario
    axes: Mapping[str, tuple[Any, ...]]
    optional: frozenset[str] = frozenset()

    @property
    def machines(self) -> tuple[ClusterSpec, ...]:
        """The machines, those of a server together."""
        return self.axes[MACHINES]

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return self.axes[METHODS]

    @property
    def overlap(self) -> str:
        """The work that overlaps synchronous transfers in every setting that waits for some."""
        return str(self.axes.get(ANY_OVERLAP, (NO_OVERLAP,))[0])

    def settings(self) -> list[Scenario]:
        """Return the settings, machines outermost."""
        methods = [method for name in self.methods for method in self._of_method(name)]
        return [replace(self.base, cluster=cluster, method=method) for cluster in self.machines for method in methods]

    def _of_method(self, name: str) -> list[Method]:
        """Return the settings of one method. Knobs without an axis stand where the base has them."""
        kind, base = method_type(name), self.base.method
        start = base.values() if base.name == name else _changed(base, kind)
        knobs = {knob: values for knob, values in self._knobs().items() if kind.has(knob)}
        made = [
            create_method(name, **{**start, **variant, **dict(zip(knobs, values, strict=True))})
            for variant in (kind.variants if self.optional else ({},))
            for values in product(*knobs.values())
        ]
        return [method.overlapping(self.overlap) for method in dict.fromkeys(made)]

    def mapping(self) -> dict[str, list[Any]]:
        """Return the values as plain data."""
        several = {key: list(dict.fromkeys(getattr(one, name) for one in self.machines)) for key, name in WHERE.items()}
        several["bandwidths"] = [format_gbps(value) for value in several["bandwidths"]]
        machines = {key: found for key, found in several.items() if key in ("gpus", "bandwidths") or len(found) > 1}
        knobs = {key: self._reported(knob) for key, knob in REPORTED.items()}
        knobs |= {knob: found for knob, found in self._knobs().items() if knob not in REPORTED.values()}
        return {
            "methods": list(self.methods),
            **machines,
            **{key: [plain_knob(value) for value in found] for key, found in knobs.items()},
        }

    def _knobs(self) -> dict[str, tuple[Any, ...]]:
        """Return the values of each knob with an axis, and of the overlap, by name."""
        others = (MACHINES, METHODS)
        return {path.removeprefix("method."): found for path, found in self.axes.items() if path not in others}

    def _reported(self, knob: str) -> tuple[Any, ...]:
        """Return the values of a knob: of its axis, else of the base, else the default."""
        stands = self.base.method.values().get(knob)
        default = rule_at(f"method.{knob}")[0].read(KNOBS[knob].default, knob)
        return self._knobs().get(knob, (default if stands is None else stands,))


def _changed(method: Method, kind: type[Method]) -> dict[str, Any]:
    """Return the knobs of a method that differ from its defaults, as far as another kind of method has them."""
    usual = type(method)().values()
    return {knob: value for knob, value in method.values().items() if value != usual[knob] and kind.has(knob)}


def plain_knob(value: Any) -> Any:
    """Return a knob's value as plain data."""
    if isinstance(value, CacheSize):
        return value.describe()
    return list(value) if isinstance(value, tuple) else value
