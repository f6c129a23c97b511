"""Networks of the catalogue by name: where a network bandwidth is asked for, the name of a link may stand.

`10GbE` is a bandwidth with its unit (`gcnsim.spellings`). A link whose other figures are not those of the generic one
(InfiniBand) is another kind of network: who names it means its efficiency and latency too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.errors import ScenarioError, UnitError, nearest
from gcnsim.fields import Measure, shown
from gcnsim.hardware.catalogue import GENERIC_LINK, link, links
from gcnsim.hardware.tables import INSIDE
from gcnsim.known_names import known_name
from gcnsim.units import BANDWIDTH

MOST: Final = 1.25e12
"""Bytes per second: 10 Tbit/s."""

_GENERATIONS: Final = frozenset({"edr", "hdr", "ndr"})
_DIGITS: Final = 7


def networks() -> tuple[str, ...]:
    """Names of the links between servers that have a bandwidth of their own."""
    return tuple(name for name in links() if name != GENERIC_LINK and not name.startswith(INSIDE))


def network_named(text: object) -> str | None:
    """The link between servers that `text` names; None: it names none."""
    return known_name(text, networks()) if isinstance(text, str) else None


def kind_of_network(text: object) -> str | None:
    """The link whose efficiency and latency `text` means, where it names one that is not as the generic one is."""
    name = network_named(text)
    if name is None:
        return None
    own, usual = link(name), link(GENERIC_LINK)
    figures = ("efficiency", "latency_s", "queue")
    same = all(getattr(own, each).value == getattr(usual, each).value for each in figures)
    return None if same else name


@dataclass(frozen=True, slots=True)
class NetworkBandwidth(Measure):
    """A bandwidth with its unit, or a network of the catalogue, which has one."""

    def read(self, raw: object, path: str) -> float:
        if (name := network_named(raw)) is not None:
            value = link(name).bandwidth.value
            self.check(value, path)
            return value
        try:
            return Measure.read(self, raw, path)
        except UnitError as error:
            if not isinstance(raw, str) or not raw.strip()[:1].isalpha():
                raise UnitError(f"{error}, 10GbE, ethernet-25g") from None
        raise ScenarioError(f"{path}: {shown(raw)} is neither a bandwidth (15Gbps) nor a network; {self._near(raw)}")

    def _near(self, raw: Any) -> str:
        meant = _of_generation(str(raw))
        known = nearest(raw, networks())
        return f"did you mean {meant!r}? known: {known.partition('known: ')[2]}" if meant else known


def _of_generation(text: str) -> str | None:
    """The network of which `text` says the generation, alone or with the rate: `ib-ndr`, `hdr200`; None: none."""
    words = re.findall(r"[a-z]+|[0-9]+", text.lower())
    rates = {int(word) for word in words if word.isdigit() and len(word) < _DIGITS}
    meant = [
        name
        for name in networks()
        if set(words) & _GENERATIONS & set(name.split("-")) and rates <= {round(link(name).bandwidth.value * 8 / 1e9)}
    ]
    return min(meant, key=len, default=None)


NETWORK: Final = NetworkBandwidth(BANDWIDTH, 125.0, MOST)
"""Of a server's NIC, per direction."""
