"""The settings that are considered: machines of the catalogue or of lists, times methods with their knobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from gcnsim.errors import ScenarioError, nearest, plural
from gcnsim.hardware import PriceBook, hosts, instance_of, prices
from gcnsim.known_names import known_name
from gcnsim.methods import COMPARED
from gcnsim.planning import Grid, Rule, scenarios
from gcnsim.planning.recommend import rate_of
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario

SERVERS: Final = (1, 2, 3, 4)
"""Instances of a kind that are tried where nobody says how many GPUs."""

MOST_GPUS: Final = 32
"""Most GPUs of these: the shipped profiles of partitions go as far."""

TAUS: Final = (0, 1)
RATES: Final = (1.0,)
CACHES: Final = (0.0, 0.1, 0.3)


@dataclass(frozen=True, slots=True)
class Permitted:
    """How far values may be approximate: the least share of edges or nodes that is sampled, the most iterations of
    staleness. explicit: whether somebody said so, where recorded runs decide else."""

    least_epsilon: float = 1.0
    most_tau: int = 1
    explicit: bool = False

    def allows(self, scenario: Scenario) -> bool:
        """Whether a setting is not more approximate than that."""
        method = scenario.method
        return rate_of(method) >= self.least_epsilon and method.tau <= self.most_tau

    @property
    def text(self) -> str:
        """As a clause."""
        least = f"a sampling rate of at least {self.least_epsilon:g}"
        sampled = "nothing sampled" if self.least_epsilon >= 1 else least
        return f"{sampled}, values at most {plural(self.most_tau, 'iteration')} old"


@dataclass(frozen=True, slots=True)
class Machines:
    """What to choose from; an empty list is what is usual: instances of the catalogue that have a price.

    hosts: instance types by name. servers: of each. devices, bandwidths (bytes/s): of machines that are no instance.
    """

    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    bandwidths: tuple[float, ...] = ()
    gpus: tuple[int, ...] = ()
    gpus_per_server: int | None = None
    methods: tuple[str, ...] = COMPARED
    taus: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    caches: tuple[CacheSize, ...] = ()

    def clusters(self, base: ClusterSpec, book: PriceBook, most_gpus: int) -> list[ClusterSpec]:
        """The machines, each once. Raises ScenarioError where a name is none of the catalogue's."""
        if self.devices or self.bandwidths:
            found = list(self._of_lists(base))
        else:
            names = self.hosts or priced_hosts(book)
            found = [each for name in names for each in self._of_instance(base, name)]
        kept = [each for each in dict.fromkeys(found) if each.gpus <= most_gpus]
        if not kept:
            raise ScenarioError(f"--gpus: no machine has them, or the workload is not known for more than {most_gpus}")
        return kept

    def _of_lists(self, base: ClusterSpec) -> Iterator[ClusterSpec]:
        devices, bandwidths = self.devices or (base.device,), self.bandwidths or (base.bandwidth,)
        for device, bandwidth, gpus in product(devices, bandwidths, self.gpus or (2, 4, 8, 16)):
            yield replace(base, device=device, bandwidth=bandwidth, gpus=gpus)

    def _of_instance(self, base: ClusterSpec, name: str) -> Iterator[ClusterSpec]:
        known = known_name(name, hosts())
        if known is None:
            raise ScenarioError(f"--host: unknown host {name!r}; {nearest(name, hosts())}")
        found = instance_of(known)
        if found is None:
            raise ScenarioError(f"--host: {name} has no GPUs of its own; give --device, --gpus and --bandwidth instead")
        each = self.gpus_per_server or found.gpus
        usual = [count * each for count in SERVERS if count * each <= MOST_GPUS] or [each]
        for gpus in self.gpus or usual:
            inside = min(each, gpus)
            with suppress(ScenarioError):
                yield replace(
                    base,
                    device=found.device,
                    host=known,
                    bandwidth=min(found.bandwidth, 1.25e12),
                    gpus=gpus,
                    gpus_per_server=inside,
                )

    def settings(self, base: Scenario, cluster: ClusterSpec) -> list[Scenario]:
        """The methods with their knobs on one machine."""
        grid = Grid(
            methods=self.methods,
            gpus=(cluster.gpus,),
            bandwidths=(cluster.bandwidth,),
            taus=self.taus or TAUS,
            epsilons=self.rates or RATES,
            caches=self.caches or tuple(CacheSize(fraction=each) for each in CACHES),
            rates=self.rates or RATES,
            devices=(cluster.device,),
        )
        return list(dict.fromkeys(scenarios(replace(base, cluster=cluster), grid)))


def priced_hosts(book: PriceBook) -> tuple[str, ...]:
    """The hosts of the catalogue that can be rented by the prices of `book`, by name."""
    listed = {each.instance for each in prices() if each.pricing == book.pricing}
    listed |= {each.instance for each in book.given}
    found = tuple(name for name in hosts() if name in listed)
    if not found:
        raise ScenarioError(f"--pricing: no host of the catalogue has a {book.pricing} price; give --device and --gpus")
    return found


def rule_of(methods: Sequence[str], permitted: Permitted) -> Rule:
    """The rule of what may be recommended, for the next steps."""
    return Rule(tuple(methods), True, permitted.least_epsilon)
