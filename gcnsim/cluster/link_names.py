"""The names that links have (`gcnsim/cluster/build.py`), read again: whose a link is, which are like it, its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from gcnsim.ids import Rank, Server

SERVER: Final = "server"
WORKER: Final = "worker"
RACK: Final = "rack"


class LinkFamily(NamedTuple):
    """Links whose names begin alike. owner: what there is one of for each. text: a link of it in words, by its number
    and, of a PCIe switch, its place in the server. others: the others of it, in words. head: the heading of a column.
    """

    owner: str
    text: str
    others: str
    head: str


FAMILIES: Final[Mapping[str, LinkFamily]] = {
    "nic": LinkFamily(SERVER, "NIC of server {0}", "those of other servers", "NIC"),
    "pcie": LinkFamily(WORKER, "PCIe of worker {0}", "those of other workers", "PCIe"),
    "pcie-switch": LinkFamily(SERVER, "PCIe switch {1} of server {0}", "other switches", "PCIe switch {1}"),
    "nvlink": LinkFamily(WORKER, "NVLink of worker {0}", "those of other workers", "NVLink"),
    "memory": LinkFamily(SERVER, "host memory copies of server {0}", "those of other servers", "memory"),
    "dram": LinkFamily(SERVER, "host memory of server {0}", "those of other servers", "host memory"),
    "staging": LinkFamily(WORKER, "host memory copies of worker {0}", "those of other workers", "memory copies"),
    "rack": LinkFamily(RACK, "uplink of rack {0}", "those of other racks", "uplink"),
    "cpu": LinkFamily(SERVER, "CPU cores of server {0}", "those of other servers", "CPU cores"),
}
"""By what their names begin with."""

_NAME: Final = re.compile(r"([a-z-]+?)([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([a-z]+))?")


@dataclass(frozen=True, slots=True)
class LinkName:
    """A link by its name: `pcie-switch0.1.up` is the uplink of switch 1 of server 0. number: of its server, worker or
    rack. place: of a PCIe switch in its server, else None. way: `tx`, `rx`, `up` or `down`; None of what has one way.
    """

    family: str
    number: int
    place: int | None
    way: str | None

    @classmethod
    def of(cls, name: str) -> LinkName | None:
        """The parts of a name; None of a name that no cluster gives."""
        found = _NAME.fullmatch(name)
        if found is None or found[1] not in FAMILIES:
            return None
        return cls(found[1], int(found[2]), None if found[3] is None else int(found[3]), found[4])

    @property
    def text(self) -> str:
        """Its words, without the way."""
        return FAMILIES[self.family].text.format(self.number, self.place)

    @property
    def others(self) -> str:
        """The links that are like it, in words."""
        return FAMILIES[self.family].others

    @property
    def head(self) -> str:
        """What it is beside other links of its owner."""
        return FAMILIES[self.family].head.format(self.number, self.place)

    @property
    def of_server(self) -> Server | None:
        """The server that it is a link of; None of workers' and racks'."""
        return self.number if FAMILIES[self.family].owner == SERVER else None

    @property
    def of_worker(self) -> Rank | None:
        """The worker that it is a link of; None of servers' and racks'."""
        return self.number if FAMILIES[self.family].owner == WORKER else None

    def in_server(self, gpus_per_server: int) -> Server | None:
        """The server that it is in, a worker's in that of the worker; None of racks'."""
        return self.of_server if self.of_worker is None else self.of_worker // gpus_per_server
