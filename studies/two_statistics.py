"""Why the statistics `profile` and `published` differ: `python -m studies.two_statistics [reddit] [--gpus 6]`.

From the profile's counts to those of published statistics, one difference after the other: as many rows in all, as many
of them within servers, every worker sending alike, and at last the loads and their order. Prints the iteration of
psc-gcn (tau 2, epsilon 0.1) after each; docs/surrogates.md shows it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gcnsim.core.ids import AnyArray
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd, Source, SourceView
from gcnsim.simulation.statistics_source import REMOTE
from gcnsim.trace.counts import AccessCounts


class Counted(SourceView):
    """The accesses of `source` with counts of one's own."""

    def __init__(self, source: Source, counted: AccessCounts) -> None:
        super().__init__(source)
        self.counted = counted

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        """Those given."""
        return self.counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the steps; return the exit code."""
    parser = argparse.ArgumentParser(description="From a profile to published statistics, step by step.")
    parser.add_argument("dataset", nargs="?", default="reddit")
    parser.add_argument("--gpus", type=int, default=6)
    options = parser.parse_args(arguments)
    base, published = (scenario(options.dataset, options.gpus, name) for name in ("profile", "published"))
    source = open_source(base)
    ours, theirs = counted(base), counted(published)
    fewer = ours.rows * (theirs.rows.sum() / ours.rows.sum())
    within = kept_within(fewer, base.cluster.gpus_per_server, REMOTE.likely)
    alike = kept_within(np.ones_like(fewer), base.cluster.gpus_per_server, REMOTE.likely)
    alike = alike / alike.sum(axis=2, keepdims=True) * fewer.sum(axis=2, keepdims=True)
    steps = {"profile": ours.rows, "rows in all": fewer, "rows within servers": within, "equal senders": alike}
    before = None
    for name, rows in [*steps.items(), ("published", None)]:
        counts = theirs if rows is None else replace(ours, rows=np.rint(rows).astype(np.int64))
        seconds = simulate_scenario(base, Counted(source, counts)).metrics.iteration_s
        change = "" if before is None else f" ({100 * (seconds / before - 1):+.0f} %)"
        sys.stdout.write(f"{name:<20} {1000 * seconds:.0f} ms{change}\n")
        before = seconds
    return 0


def scenario(dataset: str, gpus: int, statistics: str) -> Scenario:
    """PSC-GCN as it is asked by default."""
    requested = {"cluster": {"gpus": gpus}, "workload": {"dataset": dataset}, "partition": {"statistics": statistics}}
    return from_mapping({"schema": SCHEMA, **requested}, "benchmark")


def counted(base: Scenario) -> AccessCounts:
    """The likely counts of a scenario."""
    accesses = open_source(base)
    return accesses.counts(base, resolve_model(base.workload, accesses.declared).features, RangeEnd.LIKELY)


def kept_within(rows: AnyArray, per_server: int, remote: float) -> AnyArray:
    """The rows of every receiver, of which those from other servers are `remote` times their share by number."""
    workers = rows.shape[1]
    server = np.arange(workers) // per_server
    away = server[:, None] != server[None, :]
    beside = ~away & ~np.eye(workers, dtype=np.bool_)
    share = remote * away.sum(axis=1) / np.maximum((away | beside).sum(axis=1), 1)
    share = np.where(beside.any(axis=1), share, 1.0)[None, :, None]
    total = rows.sum(axis=2, keepdims=True)
    far, near = np.where(away, rows, 0.0), np.where(beside, rows, 0.0)
    moved: AnyArray = total * (
        share * far / np.maximum(far.sum(axis=2, keepdims=True), 1e-9)
        + (1.0 - share) * near / np.maximum(near.sum(axis=2, keepdims=True), 1e-9)
    )
    return moved


if __name__ == "__main__":
    sys.exit(main())
