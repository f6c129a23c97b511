"""Map names of GPUs and of networks to entries of the catalogue.

A driver's GPU name gives the maker, the model, and sometimes board and memory: `Tesla V100-SXM2-16GB`, `NVIDIA H100
80GB HBM3`. Maker and kind of memory are ignored. The rest must be the catalogue's name, and a memory size must match
the device's, if either gives it. Any other word in a name means another GPU: `RTX 3090 Ti`, `H200 NVL`.

A link's name may replace a network bandwidth. `10GbE` is a bandwidth with its unit (`gcnsim.core.spellings`). A link
whose other figures differ from the generic one's (InfiniBand) is another kind of network; its name also implies its
efficiency and latency.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, UnitError, nearest
from gcnsim.core.fields import QuantityRange, shown
from gcnsim.core.spellings import known_name
from gcnsim.core.units import BANDWIDTH
from gcnsim.hardware.catalogue import GENERIC_LINK, device, devices, link, links
from gcnsim.hardware.own_files import is_file
from gcnsim.hardware.profiles import INSIDE

_UNSAID: Final = re.compile(r"nvidia|amd|tesla|geforce|radeon|instinct|generation|sxm\d?|hbm\d?e?|ac")
_BOARD: Final = re.compile(r"pcie|sxm\d?|hbm\d?e?|nvl")
_OF_HOST: Final = {"gh200": "480gb"}
"""The memory size in a driver's name, by model, where it belongs to the processor and not to the GPU."""

_MEMORY: Final = re.compile(r"(\d+)\s*gb\b")


def gpu_named(name: str) -> str | None:
    """The catalogue name of the GPU with the driver name `name`; None if it is not in the catalogue.

    >>> gpu_named("Tesla T4"), gpu_named("NVIDIA GeForce RTX 2080 Ti"), gpu_named("NVIDIA GeForce RTX 2080 SUPER")
    ('t4', 'rtx-2080-ti', None)
    """
    words = {word for word in _words(name) if not _UNSAID.fullmatch(word)}
    words -= {_OF_HOST[word] for word in words & _OF_HOST.keys()}
    return next((known for known in _gpus() if _is(known, words)), None)


def known_device(text: str) -> str | None:
    """The catalogue device that `text` names, as written by people or drivers, or a device file.

    >>> known_device("H100"), known_device("Tesla T4"), known_device("A100-SXM4-80GB"), known_device("A100 80GB")
    ('h100', 't4', 'a100-80', None)
    """
    return text if is_file(text) else known_name(text, devices()) or gpu_meant(text)


def gpu_meant(text: str) -> str | None:
    """The same as `gpu_named` for names that people write.

    If two boards of a GPU have the same memory, a name with only the memory is ambiguous; a driver names the board.

    >>> gpu_meant("Tesla V100-SXM2-32GB"), gpu_meant("Tesla V100 32GB")
    ('v100-32', None)
    """
    named = gpu_named(text)
    model, _, memory = (named or "").rpartition("-")
    unsaid = memory.isdigit() and not any(_BOARD.fullmatch(word) for word in _words(text))
    return None if unsaid and f"{model}-pcie-{memory}" in devices() else named


def gpu_of(names: Sequence[str], where: str) -> str:
    """The catalogue device of all GPUs of a machine. names: from their driver.

    Raises ScenarioError that starts with `where`: no GPU, several kinds of GPUs, or one missing from the catalogue.
    """
    kinds = sorted(set(names))
    if len(kinds) != 1:
        problem = f"has GPUs of several kinds ({', '.join(kinds)})" if kinds else "names no GPU"
        raise ScenarioError(f"{where}: {problem}; allowed: GPUs of one kind")
    named = gpu_named(kinds[0])
    if named is None:
        raise ScenarioError(f"{where}: the catalogue has no GPU {kinds[0]!r}; known: {', '.join(_gpus())}")
    return named


def _gpus() -> list[str]:
    return [name for name in devices() if device(name).kind == "gpu"]


def _is(known: str, words: set[str]) -> bool:
    memory = round(device(known).memory.value / 1e9)
    own = {f"{memory}gb" if word == str(memory) else word for word in known.split("-")}
    return own <= words <= own | {f"{memory}gb"}


def _words(name: str) -> list[str]:
    joined = _MEMORY.sub(r" \1gb ", name.lower())
    return [word for word in re.split(r"[^a-z0-9]+", joined) if word]


MOST: Final = 1.25e12
"""Bytes per second: 10 Tbit/s."""

_GENERATIONS: Final = frozenset({"edr", "hdr", "ndr"})
_DIGITS: Final = 7


def networks() -> tuple[str, ...]:
    """Names of the links between servers that imply a bandwidth."""
    return tuple(name for name in links() if name != GENERIC_LINK and not name.startswith(INSIDE))


@cache
def links_between() -> tuple[str, ...]:
    """Names of the links between servers."""
    return (GENERIC_LINK, *networks())


@cache
def links_within() -> tuple[str, ...]:
    """Names of the other links."""
    between = links_between()
    return tuple(name for name in links() if name not in between)


def network_named(text: object) -> str | None:
    """The link between servers that `text` names; None for none."""
    return known_name(text, networks()) if isinstance(text, str) else None


def kind_of_network(text: object) -> str | None:
    """The link whose efficiency and latency `text` implies, if it names one that differs from the generic one."""
    name = network_named(text)
    if name is None:
        return None
    own, usual = link(name), link(GENERIC_LINK)
    figures = ("efficiency", "latency_s", "queue")
    same = all(getattr(own, figure).value == getattr(usual, figure).value for figure in figures)
    return None if same else name


@dataclass(frozen=True, slots=True)
class NetworkBandwidth(QuantityRange):
    """A bandwidth with its unit, or a network of the catalogue, which implies one."""

    def read(self, raw: object, path: str) -> float:
        if (name := network_named(raw)) is not None:
            value = link(name).bandwidth.value
            self.check(value, path)
            return value
        try:
            return QuantityRange.read(self, raw, path)
        except UnitError as error:
            if not isinstance(raw, str) or not raw.strip()[:1].isalpha():
                raise UnitError(f"{error}, 10GbE, ethernet-25g") from None
        raise ScenarioError(f"{path}: {shown(raw)} is neither a bandwidth (15Gbps) nor a network; {self._near(raw)}")

    def _near(self, raw: Any) -> str:
        meant = _of_generation(str(raw))
        known = nearest(raw, networks())
        return f"did you mean {meant!r}? known: {known.partition('known: ')[2]}" if meant else known


def _of_generation(text: str) -> str | None:
    """The network whose generation is in `text`, alone or with the rate: `ib-ndr`, `hdr200`; None for none."""
    words = re.findall(r"[a-z]+|[0-9]+", text.lower())
    rates = {int(word) for word in words if word.isdigit() and len(word) < _DIGITS}
    meant = [
        name
        for name in networks()
        if set(words) & _GENERATIONS & set(name.split("-")) and rates <= {round(link(name).bandwidth.value * 8 / 1e9)}
    ]
    return min(meant, key=len, default=None)


NETWORK: Final = NetworkBandwidth(BANDWIDTH, 125.0, MOST)
"""The bandwidth of a server's NIC, per direction."""
