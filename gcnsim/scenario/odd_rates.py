"""Warnings about rates above those of a device, an instance or a link.

Such rates are allowed for planned hardware, but each warning names the likeliest mistake: both directions added, all
adapters added, bytes confused with bits. It also warns about devices that an instance is not sold with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gcnsim.core.units import format_bytes, format_gbps
from gcnsim.hardware import GENERIC_LINK, Figure, device, devices, is_file, link, links
from gcnsim.scenario.machine import Machine, resolve_machine
from gcnsim.scenario.machine_profiles import NVLINK
from gcnsim.scenario.specs import ClusterSpec, Scenario

SLACK: Final = 1.02
"""The share by which a rate may be rounded up."""

ADAPTER: Final = 5e10
"""Bytes/s per direction of the fastest adapter in the catalogue, InfiniBand NDR: 400 Gbit/s."""

NEAR: Final = 0.15
"""The tolerance within which a whole-number ratio explains a rate."""

BITS: Final = 8.0

COMMON: Final = (1.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0)
"""Common rates of adapters, in Gbit/s: eight times one of them was probably meant in bytes."""


def rate_warnings(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """One line for each rate of the scenarios above the real one, and for a device in another one's instance."""
    for cluster in dict.fromkeys(scenario.cluster for scenario in scenarios):
        machine = resolve_machine(cluster)
        if machine.kind == "gpu":
            yield from filter(
                None, (_other_device(machine), _nvlink(machine), _network(machine), _host_memory(machine))
            )
        yield from _figures(cluster)


def _other_device(machine: Machine) -> str | None:
    """A warning about `cluster.host`: an instance with other devices than the requested ones."""
    host, gpu_names = machine.host, {item.name for item in machine.devices or (machine.device,)}
    if host.device is None or gpu_names == {host.device}:
        return None
    names = ", ".join(sorted(gpu_names))
    return f"cluster.host: {host.name} is sold with {host.device}, not {names}: no such instance can be rented"


def _nvlink(machine: Machine) -> str | None:
    """A warning about `cluster.nvlink`, the rate between GPUs of a server."""
    given = machine.spec.nvlink
    if not given:
        return None
    rates = {item.name: item.nvlink for item in machine.devices or (machine.device,)}
    text, known = _gigabytes(given), {name: rate.value for name, rate in rates.items() if rate is not None}
    without = [name for name in rates if name not in known]
    if without:
        if machine.spec.nvlink_gpus or any(is_file(name) or name not in devices() for name in without):
            return None
        names = ", ".join(without)
        return f"cluster.nvlink: {text}, but the catalogue knows no NVLink of {names} (bridges: cluster.nvlink_gpus=2)"
    name = min(known, key=lambda item: known[item])
    has = known[name]
    if given <= SLACK * has:
        return None
    return f"cluster.nvlink: {text} is more than {name} has in one direction ({_gigabytes(has)}): {_why(given / has)}"


def _network(machine: Machine) -> str | None:
    """A warning about `cluster.bandwidth`, the network of a server with all its adapters."""
    rate = machine.spec.bandwidth
    has, what = _instance_network(machine) if machine.host.nic is not None else _adapters(machine)
    if rate <= SLACK * has:
        return None
    return f"cluster.bandwidth: {format_gbps(rate)} is more than {what}: {_network_why(machine, rate, has)}"


def _instance_network(machine: Machine) -> tuple[float, str]:
    """The network rate of an instance, also in words."""
    host = machine.host
    assert host.nic is not None
    cards = 1 if host.nics is None else round(host.nics.value)
    together = f", {cards} adapters together" if cards > 1 else ""
    return host.nic.value, f"a {host.name} has per direction ({format_gbps(host.nic.value)}{together})"


def _adapters(machine: Machine) -> tuple[float, str]:
    """The most that the adapters of another server carry, also in words: servers of modules have one per GPU."""
    spec = machine.spec
    named = spec.link != GENERIC_LINK
    rate, kind = (link(spec.link).bandwidth.value, spec.link) if named else (ADAPTER, "InfiniBand NDR")
    modules = all(item.nvlink is not None for item in machine.devices or (machine.device,))
    count = spec.gpus_per_server if modules else 1
    one = "one adapter carries" if count == 1 else f"{count} adapters carry, one a GPU"
    return count * rate, f"{one} ({format_gbps(rate)}, {kind})"


def _network_why(machine: Machine, rate: float, has: float) -> str:
    """The probable mistakes behind a bandwidth."""
    servers, ratio, bits = machine.spec.servers, rate / has, rate * 8 / 1e9 / BITS
    if servers > 1 and machine.host.nic is not None and _is(ratio, servers):
        return f"the networks of all {servers} servers added?"
    if machine.host.nic is not None and _is(ratio, 2):
        return "both directions added?"
    swapped = f"{bits:g} GB/s for {bits:g} Gbps" if bits in COMMON else ""
    if machine.host.nic is not None and swapped:
        return f"{swapped}?"
    added = "all adapters of an instance, or of several servers, added"
    return f"{added}, or {swapped}?" if swapped else f"{added}?"


def _host_memory(machine: Machine) -> str | None:
    """A warning about `cluster.host_memory`, the memory bandwidth of a server."""
    rate, has = machine.spec.host_memory, machine.host.memory_bandwidth
    most = has.value if has.high is None else has.high
    if rate is None or rate <= SLACK * most:
        return None
    return (
        f"cluster.host_memory: {_gigabytes(rate)} is more than the memory of a {machine.host.name} moves "
        f"({_gigabytes(most)} at most)"
    )


def _figures(cluster: ClusterSpec) -> Iterator[str]:
    """Warnings about `cluster.figures`: rates of links and devices of the catalogue."""
    for name, value in cluster.figures:
        profile, _, field = name.rpartition(".")
        if field not in ("bandwidth", "memory_bandwidth", "flops_fp32", "flops_fp16"):
            continue
        if profile in links() and profile not in (NVLINK, GENERIC_LINK):
            figure: Figure | None = getattr(link(profile), field, None)
        elif profile in devices():
            figure = getattr(device(profile), field, None)
        else:
            continue
        if figure is None or figure.source != "datasheet" or value <= SLACK * figure.value:
            continue
        ratio = value / figure.value
        why = "with sparsity?" if field.startswith("flops") and _is(ratio, 2) else _why(ratio)
        yield f"cluster.figures: {name} is {ratio:.3g} times the datasheet's ({figure.reference}): {why}"


def _is(ratio: float, times: float) -> bool:
    return abs(ratio / times - 1.0) <= NEAR


def _why(ratio: float) -> str:
    """The probable mistake behind a rate that is too high by `ratio`."""
    if _is(ratio, 2):
        return "datasheets add both directions, and this is one"
    if _is(ratio, BITS) or _is(ratio, 2 * BITS):
        return "bytes (GB/s) for bits (Gbps)?"
    return "more than one GPU's links, or both directions, added?"


def _gigabytes(rate: float) -> str:
    return f"{format_bytes(rate)}/s" if rate < 1e9 else f"{rate / 1e9:g} GB/s"
