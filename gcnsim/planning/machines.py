"""The machines to choose from: the priced instances of the catalogue, or the given lists; and their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from gcnsim.core.errors import ScenarioError, nearest, plural
from gcnsim.core.spellings import known_name
from gcnsim.core.units import format_gbps
from gcnsim.hardware import (
    DESCRIBED_HOST,
    GENERIC_LINK,
    NETWORK,
    PriceBook,
    hosts,
    instance_of,
    is_file,
    is_host,
    prices,
)
from gcnsim.scenario import ClusterSpec, Scenario, setting_text
from gcnsim.scenario.machine import resolve_machine

SERVERS: Final = (1, 2, 3, 4)
"""Numbers of instances per type that are tried if the number of GPUs is not given."""

MOST_GPUS: Final = 32
"""The most GPUs that are tried then: the bundled partition profiles reach this far."""


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines to choose from; an empty list means the priced instances of the catalogue.

    hosts: instance types by name. devices, bandwidths (bytes/s): for machines that are not instances. servers: those
    that the devices are in, one for each; empty: the base's.
    """

    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    servers: tuple[ClusterSpec, ...] = ()
    bandwidths: tuple[float, ...] = ()
    gpus: tuple[int, ...] = ()
    gpus_per_server: int | None = None

    def clusters(self, base: ClusterSpec, book: PriceBook, most_gpus: int) -> list[ClusterSpec]:
        """Return the distinct machines. Raises ScenarioError for an unknown name."""
        if base.measured_compute is not None:
            return self._measured(base, book)
        if self.devices or self.bandwidths:
            clusters = list(self._of_lists(base))
        else:
            names = self.hosts or priced_hosts(book)
            clusters = [one for name in names for one in self._of_instance(base, name)]
        kept = [one for one in dict.fromkeys(clusters) if one.gpus <= most_gpus]
        if not kept:
            raise ScenarioError(f"--gpus: no machine has them, or the workload is not known for more than {most_gpus}")
        return kept

    def _measured(self, base: ClusterSpec, book: PriceBook) -> list[ClusterSpec]:
        """Return the machines with the measured device and number of workers. Raises ScenarioError for others."""
        measured = resolve_machine(base).measured
        assert measured is not None
        source = f"{base.measured_compute} was measured on {measured.parts} x {base.device}"
        for option, values, own in (("gpus", self.gpus, measured.parts), ("device", self.devices, base.device)):
            other = next((value for value in values if value != own), None)
            if other is not None:
                raise ScenarioError(f"--{option}: {other} is not what was measured, {source}; allowed: {own}")
        here = replace(self, gpus=(measured.parts,))
        if self.devices or self.bandwidths:
            return list(dict.fromkeys(here._of_lists(base)))
        names = self.hosts or priced_hosts(book)
        every = dict.fromkeys(one for name in names for one in here._of_instance(base, name))
        kept = [cluster for cluster in every if cluster.device == base.device]
        wrong = next((cluster for cluster in every if cluster not in kept), None)
        if not kept or (self.hosts and wrong is not None):
            what = "none of these hosts has it" if wrong is None else f"{wrong.host} has {wrong.device}"
            raise ScenarioError(
                f"--host: {what}; {source}; "
                f"allowed: hosts with {base.device}, or --device {base.device} and --bandwidth"
            )
        return kept

    def _of_lists(self, base: ClusterSpec) -> Iterator[ClusterSpec]:
        for server in self.servers or [replace(base, device=name) for name in self.devices] or [base]:
            for bandwidth, gpus in product(self.bandwidths or (server.bandwidth,), self.gpus or (2, 4, 8, 16)):
                yield replace(server, bandwidth=bandwidth, gpus=gpus)

    def _of_instance(self, base: ClusterSpec, name: str) -> Iterator[ClusterSpec]:
        known = name if is_file(name) else known_name(name, hosts())
        if known is None:
            raise ScenarioError(f"--host: unknown host {name!r}; {nearest(name, hosts())}; {DESCRIBED_HOST}")
        instance = instance_of(known, self.gpus_per_server)
        if instance is None:
            raise ScenarioError(f"--host: {name} has no GPUs of its own; give --device, --gpus and --bandwidth instead")
        per_server = self.gpus_per_server or instance.gpus
        for gpus in self.gpus or usual_gpus(per_server):
            inside = min(per_server, gpus)
            with suppress(ScenarioError):
                yield replace(
                    base,
                    device=instance.device,
                    host=known,
                    bandwidth=min(instance.bandwidth, NETWORK.high),
                    # A requested link is kept.
                    link=instance.network if base.link == GENERIC_LINK else base.link,
                    gpus=gpus,
                    gpus_per_server=inside,
                )


def usual_gpus(per_server: int) -> list[int]:
    """Return the numbers of GPUs that are tried for an instance type: two, four, ... of one instance, and one to four
    whole ones.
    """
    part = [2**power for power in range(1, per_server.bit_length()) if 2**power < per_server]
    return part + ([count * per_server for count in SERVERS if count * per_server <= MOST_GPUS] or [per_server])


def space_text(clusters: Sequence[ClusterSpec]) -> str:
    """Return the machines in a few words: families of instance types, or devices and networks, and how many GPUs."""
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
    """Return the instance type of a machine's servers, or None if they have none."""
    instance = instance_of(cluster.host) if is_host(cluster.host) else None
    return cluster.host if instance is not None and instance.device == cluster.device else None


def priced_hosts(book: PriceBook) -> tuple[str, ...]:
    """Return the hosts that `book` has a price for: catalogue hosts by name, and host files."""
    listed = {price.instance for price in prices() if price.pricing == book.pricing}
    listed |= {price.instance for price in book.given}
    own = sorted(name for name in listed if is_file(name))
    names = (*(name for name in hosts() if name in listed), *own)
    if not names:
        raise ScenarioError(f"--pricing: no host of the catalogue has a {book.pricing} price; give --device and --gpus")
    return names


def machine_text(cluster: ClusterSpec) -> str:
    """Return a machine in a few words: `2 x g4dn.12xlarge (8 x t4)`, or `6 x t4 at 15Gbps`."""
    gpus = f"{cluster.gpus} x {cluster.device}"
    if instance_name(cluster) is None:
        return f"{gpus} at {format_gbps(cluster.bandwidth)}"
    return f"{cluster.servers} x {cluster.host} ({gpus})"


def name_of(scenario: Scenario) -> str:
    """Return setting and machine in words."""
    return f"{setting_text(scenario.method)} on {machine_text(scenario.cluster)}"
