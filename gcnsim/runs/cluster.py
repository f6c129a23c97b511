"""The real cluster of a run, where there are several servers: `cluster.json` beside its run.json (docs/files.md)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from gcnsim.io.atomic import atomic_write
from gcnsim.io.json_files import read_json
from gcnsim.shapes import OneOrMore, Positive

CLUSTER: Final = "cluster.json"
SCHEMA: Final = "gcnsim.cluster/1"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The servers that a run was trained on, `cluster.json` beside its `run.json`."""

    MAY_SAY_MORE: ClassVar = True

    hosts: OneOrMore
    workers_per_host: OneOrMore
    """Ranks in a row."""
    bandwidth: Positive
    """Bytes/s of each server's link in each direction, framing included, as `cluster.bandwidth` of a scenario."""
    measured: Positive
    """Payload bytes/s that the slowest server received while all sent at once."""

    @property
    def workers(self) -> int:
        """On all hosts."""
        return self.hosts * self.workers_per_host

    def facts(self) -> dict[str, Any]:
        """As plain JSON values, by the names that the `emulation` of a run.json has too."""
        return asdict(self) | {"latency_s": 0.0}


def write_cluster(path: str | Path, cluster: Cluster) -> None:
    """Write the file. Raises FileError."""
    with atomic_write(path, text=True) as file:
        file.write(json.dumps({"schema": SCHEMA, **asdict(cluster)}, indent=1, allow_nan=False) + "\n")


def read_cluster(path: str | Path) -> Cluster:
    """The cluster in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    raw = read_json(path, "cluster")
    counts = {name: int(raw[name]) for name in ("hosts", "workers_per_host")}
    return Cluster(**counts, bandwidth=raw["bandwidth"], measured=raw["measured"])
