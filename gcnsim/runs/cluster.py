"""The real cluster of a run, where there are several servers: `cluster.json` beside its run.json (docs/files.md)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import FileError
from gcnsim.io.atomic import atomic_write
from gcnsim.io.strict_json import parse_json

CLUSTER: Final = "cluster.json"
SCHEMA: Final = "gcnsim.cluster/1"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Servers (hosts) with as many workers each, ranks in a row.

    bandwidth: bytes/s of each server's link in each direction, framing included, as `cluster.bandwidth` of a scenario.
    measured: payload bytes/s that the slowest server received while all sent at once.
    """

    hosts: int
    workers_per_host: int
    bandwidth: float
    measured: float

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
    try:
        raw = parse_json(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a JSON document") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise FileError(f"{path}: not a {SCHEMA} document")
    names = [field.name for field in fields(Cluster)]
    for name in names:
        value, whole = raw.get(name), name in names[:2]
        if not _is_count(value) if whole else not _is_size(value):
            kind = "a whole number" if whole else "a number"
            raise FileError(f"{path}: {name} is {value!r}; allowed: {kind} above 0")
    return Cluster(**{name: raw[name] for name in names})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
