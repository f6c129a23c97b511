"""The machines that are considered: instances of the catalogue that have a price, or those of lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from gcnsim.errors import ScenarioError, nearest, plural
from gcnsim.hardware import (
    DESCRIBED_HOST,
    GENERIC_LINK,
    PriceBook,
    hosts,
    instance_of,
    is_file,
    is_host,
    prices,
)
from gcnsim.known_names import known_name
from gcnsim.machine import resolve_machine
from gcnsim.scenario import CacheSize, ClusterSpec, Scenario, setting_text
from gcnsim.units import format_gbps

SERVERS: Final = (1, 2, 3, 4)
"""Instances of a kind that are tried where nobody says how many GPUs."""

MOST_GPUS: Final = 32
"""Most GPUs of these: the shipped profiles of partitions go as far."""


@dataclass(frozen=True, slots=True)
class Machines:
    """What to choose from; an empty list is what is usual: instances of the catalogue that have a price.

    hosts: instance types by name. devices, bandwidths (bytes/s): of machines that are no instance. taus, rates, caches:
    knobs; where none is given, the candidates of the rule.
    """

    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    bandwidths: tuple[float, ...] = ()
    gpus: tuple[int, ...] = ()
    gpus_per_server: int | None = None
    taus: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    caches: tuple[CacheSize, ...] = ()

    @property
    def knobs_named(self) -> bool:
        """Whether the question says which knobs to choose from."""
        return bool(self.taus or self.rates or self.caches)

    def clusters(self, base: ClusterSpec, book: PriceBook, most_gpus: int) -> list[ClusterSpec]:
        """The machines, each once. Raises ScenarioError where a name is none of the catalogue's."""
        if base.measured_compute is not None:
            return self._measured(base, book)
        if self.devices or self.bandwidths:
            found = list(self._of_lists(base))
        else:
            names = self.hosts or priced_hosts(book)
            found = [one for name in names for one in self._of_instance(base, name)]
        kept = [one for one in dict.fromkeys(found) if one.gpus <= most_gpus]
        if not kept:
            raise ScenarioError(f"--gpus: no machine has them, or the workload is not known for more than {most_gpus}")
        return kept

    def _measured(self, base: ClusterSpec, book: PriceBook) -> list[ClusterSpec]:
        """The machines of the device and the number of workers that were measured. Raises ScenarioError for others."""
        found = resolve_machine(base).measured
        assert found is not None
        source = f"{base.measured_compute} was measured on {found.parts} x {base.device}"
        for option, values, own in (("gpus", self.gpus, found.parts), ("device", self.devices, base.device)):
            other = next((value for value in values if value != own), None)
            if other is not None:
                raise ScenarioError(f"--{option}: {other} is not what was measured, {source}; allowed: {own}")
        here = replace(self, gpus=(found.parts,))
        if self.devices or self.bandwidths:
            return list(dict.fromkeys(here._of_lists(base)))
        names = self.hosts or priced_hosts(book)
        every = dict.fromkeys(one for name in names for one in here._of_instance(base, name))
        kept = [cluster for cluster in every if cluster.device == base.device]
        wrong = next((cluster for cluster in every if cluster not in kept), None)
        if not kept or (self.hosts and wrong is not None):
            what = "no host that is asked for has it" if wrong is None else f"{wrong.host} has {wrong.device}"
            raise ScenarioError(
                f"--host: {what}; {source}; "
                f"allowed: hosts with {base.device}, or --device {base.device} and --bandwidth"
            )
        return kept

    def _of_lists(self, base: ClusterSpec) -> Iterator[ClusterSpec]:
        devices, bandwidths = self.devices or (base.device,), self.bandwidths or (base.bandwidth,)
        for device, bandwidth, gpus in product(devices, bandwidths, self.gpus or (2, 4, 8, 16)):
            yield replace(base, device=device, bandwidth=bandwidth, gpus=gpus)

    def _of_instance(self, base: ClusterSpec, name: str) -> Iterator[ClusterSpec]:
        known = name if is_file(name) else known_name(name, hosts())
        if known is None:
            raise ScenarioError(f"--host: unknown host {name!r}; {nearest(name, hosts())}; {DESCRIBED_HOST}")
        found = instance_of(known)
        if found is None:
            raise ScenarioError(f"--host: {name} has no GPUs of its own; give --device, --gpus and --bandwidth instead")
        per_server = self.gpus_per_server or found.gpus
        for gpus in self.gpus or usual_gpus(per_server):
            inside = min(per_server, gpus)
            with suppress(ScenarioError):
                yield replace(
                    base,
                    device=found.device,
                    host=known,
                    bandwidth=min(found.bandwidth, 1.25e12),
                    # A link that was asked for stands.
                    link=found.network if base.link == GENERIC_LINK else base.link,
                    gpus=gpus,
                    gpus_per_server=inside,
                )


def usual_gpus(per_server: int) -> list[int]:
    """Numbers of GPUs that are tried of an instance type: two, four, ... of one instance, and those of
    one to four whole ones."""
    part = [2**power for power in range(1, per_server.bit_length()) if 2**power < per_server]
    return part + ([count * per_server for count in SERVERS if count * per_server <= MOST_GPUS] or [per_server])


def space_text(clusters: Sequence[ClusterSpec]) -> str:
    """The machines in a few words: families of instance types, or devices and networks, and how many GPUs."""
    gpus = sorted({cluster.gpus for cluster in clusters})
    count = f"{gpus[0]} to {gpus[-1]} GPUs" if len(gpus) > 1 else plural(gpus[0], "GPU")
    named = {instance_name(cluster) for cluster in clusters}
    if None not in named:
        names = dict.fromkeys(str(name).partition(".")[0] for name in sorted(map(str, named)))
        types = plural(len(named), "instance type")
        what = ", ".join(names) if len(named) > 1 else str(next(iter(named)))
        return f"{what} ({types}), {count}" if len(named) > 1 else f"{what}, {count}"
    devices = dict.fromkeys(cluster.device for cluster in clusters)
    networks = dict.fromkeys(format_gbps(cluster.bandwidth) for cluster in clusters)
    return f"{', '.join(devices)} at {', '.join(networks)}, {count}"


def instance_name(cluster: ClusterSpec) -> str | None:
    """The instance type that a machine's servers are; None of servers that are none."""
    found = instance_of(cluster.host) if is_host(cluster.host) else None
    return cluster.host if found is not None and found.device == cluster.device else None


def priced_hosts(book: PriceBook) -> tuple[str, ...]:
    """The hosts of the catalogue that can be rented by the prices of `book`, by name, and files of hosts that it has
    prices of."""
    listed = {price.instance for price in prices() if price.pricing == book.pricing}
    listed |= {price.instance for price in book.given}
    own = sorted(name for name in listed if is_file(name))
    found = (*(name for name in hosts() if name in listed), *own)
    if not found:
        raise ScenarioError(f"--pricing: no host of the catalogue has a {book.pricing} price; give --device and --gpus")
    return found


def machine_text(cluster: ClusterSpec) -> str:
    """A machine in a few words: `2 x g4dn.12xlarge (8 x t4)`, or `6 x t4 at 15Gbps`."""
    gpus = f"{cluster.gpus} x {cluster.device}"
    if instance_name(cluster) is None:
        return f"{gpus} at {format_gbps(cluster.bandwidth)}"
    return f"{cluster.servers} x {cluster.host} ({gpus})"


def name_of(scenario: Scenario) -> str:
    """Setting and machine in words."""
    return f"{setting_text(scenario.method)} on {machine_text(scenario.cluster)}"
