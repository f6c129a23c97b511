"""A real graph end to end: load, partition, sample, replay and recommend on acl_papers (103 K nodes, 4.4 M edges)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks.measuring import finished, medians, report

RUNS = 3


def main() -> int:
    """Measure; return the exit code. Skipped, and said so, where GCNSIM_DATA has no such graph."""
    graph = Path(os.environ.get("GCNSIM_DATA", "")) / "acl_papers.npz"
    if not graph.is_file():
        sys.stdout.write("graph: skipped; GCNSIM_DATA names no folder with acl_papers.npz\n")
        return 0
    arguments = ("what-if", "--graph", str(graph), "--gpus", "6", "--bandwidth", "15Gbps", "--iterations", "30")
    answer = json.loads(finished((*arguments, "--json")).printed)
    assert [row["method"] for row in answer["results"]] == ["full-graph", "pipegcn", "bns-gcn", "psc-gcn"]
    assert "102,797 nodes" in answer["provenance"]["graph"]["text"], answer["provenance"]["graph"]
    figures = medians(arguments, RUNS, wall_limit="<= 15.0")
    question = f"gcnsim what-if --graph {graph.name} --gpus 6 --iterations 30, {RUNS} new processes"
    return report("graph", question, figures)


if __name__ == "__main__":
    sys.exit(main())
