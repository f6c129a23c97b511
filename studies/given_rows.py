"""How far off answers are for machines that nobody measured: `python -m studies.given_rows [--write]`.

Every row of published tables that may be fitted is predicted without any fitted figure, and without what its own table
taught: the range of an assumed figure is then that of the values fitted to all other tables (`FITTED`), a margin of
`MARGIN` around them, and a device or host has no figure of its own that was fitted to the table's paper. Prints the
errors and how many times lie in their range; --write stores them as `gcnsim/data/given_rows.yaml`, from which answers
say how far off like questions were. Rows whose printed time is impossible, and ratios that are 1 by definition, are
left out.
"""

from __future__ import annotations

import argparse
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import yaml

from gcnsim.hardware import QUANTITIES, catalogue
from gcnsim.hardware.tables import read_figure
from gcnsim.io.atomic import atomic_write
from gcnsim.machine import machine, profiles
from gcnsim.reproduction import Cell, Row, RowScenario, asked, read_published, reproduce
from gcnsim.reproduction.quantities import WHOLE_S
from gcnsim.terminal.tables import aligned

OUT: Final = Path(__file__).resolve().parents[1] / "gcnsim" / "data" / "given_rows.yaml"

MARGIN: Final = 1.25
"""Few values say little of how far the next one may be."""

Table = tuple[str, str]

SERVER: Final = (("pipegcn", "table2"), ("pipegcn", "table4"), ("pipegcn", "table6"), ("bns_gcn", "table11"))

FITTED: Final[Mapping[tuple[str, str], Sequence[tuple[float, Sequence[Table]]]]] = {
    ("gpu", "spmm_efficiency"): (
        (0.84, SERVER), (0.36, (("psc_gcn", "table3"),)), (0.25, (("pipegcn", "table8"),)),
    ),
    ("gpu", "cache_rate"): ((1.8, (("bajaj2025", "21"),)), (3.0, SERVER)),
    ("gpu", "gemm_efficiency"): ((0.85, (("bajaj2025", "21"),)), (0.7, SERVER)),
    ("host", "staging_bandwidth"): (
        (5.8e9, SERVER), (5.3e9, (("bajaj2025", "4"),)), (1.1e10, (("bajaj2025", "21"),)),
        (9.5e9, (("sancus", "table3"),)), (1.67e10, (("sancus", "table3"),)),
    ),
    ("host", "operation_s"): ((0.17e-3, SERVER), (0.26e-3, (("bns_gcn", "table11"),))),
}  # fmt: skip
"""By kind and figure, each fitted value with the tables it follows from. One worker's host side of BNS-GCN's Table 6,
53 MB/s, is none: of 192 workers nothing else is known."""

PAPERS: Final[Mapping[str, str]] = {"bajaj2025": "Bajaj", "pipegcn": "PipeGCN", "bns_gcn": "PipeGCN"}
"""What the reference of a figure says that was fitted to a paper."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print, and write where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Errors of answers without fitted figures.")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/given_rows.yaml")
    given = parser.parse_args(arguments)
    rows = [row for row in read_published() if row.use == "calibrate"]
    found = list(left_out(rows))
    told = [_told(cell, row, rows) for cell, row in found]
    sys.stdout.write("\n".join([*_lines(told), ""]))
    if given.write:
        with atomic_write(OUT, text=True) as file:
            file.write(
                "# Written by `python -m studies.given_rows --write`: times that others measured on GPUs, each\n"
            )
            file.write("# predicted without any figure that was fitted, and without what its own table taught.\n")
            file.writelines(f"- {yaml.safe_dump(each, default_flow_style=True, width=1000).strip()}\n" for each in told)
    return 0


def left_out(rows: Sequence[Row]) -> Iterator[tuple[Cell, Row]]:
    """The judged cells of whole iterations, each with its row, predicted without what its own table taught."""
    for table in sorted({(row.paper, row.table) for row in rows}):
        own = [row for row in rows if (row.paper, row.table) == table]
        with without(table):
            for row in own:
                for cell in reproduce(rows, calibrated=False, wanted=partial(operator.is_, row)):
                    if cell.error is not None and (cell.metric in WHOLE_S or cell.metric == "epochs_per_s"):
                        yield cell, row


@contextmanager
def without(table: Table) -> Iterator[None]:
    """The catalogue as it would be had nobody seen `table`."""
    known = {kind: dict(figures) for kind, figures in catalogue._assumed().items()}
    for (kind, name), values in FITTED.items():
        others = [value for value, tables in values if set(tables) - {table}]
        low, high = min(others) / MARGIN, max(others) * MARGIN
        known[kind][name] = _within(dict(known[kind][name]), name, low, high)
    stored = catalogue._document

    def document(kind: str, name: str) -> dict[str, Any]:
        said = PAPERS.get(table[0], "no paper at all")
        return {
            key: value
            for key, value in stored(kind, name).items()
            if not (isinstance(value, dict) and f"fitted to {said}" in str(value.get("reference")))
        }

    with patch.object(catalogue, "_assumed", lambda: known), patch.object(catalogue, "_document", document):
        _forget()
        yield
    _forget()


def _within(figure: dict[str, Any], name: str, low: float, high: float) -> dict[str, Any]:
    """The figure with another range, which holds its value."""
    value = read_figure(figure, QUANTITIES[name], name).value
    ends = {"low": min(low, value), "high": max(high, value)}
    if name.endswith("efficiency"):
        return figure | {key: f"{100 * min(end, 1.0):.6g}%" for key, end in ends.items()}
    unit = {"staging_bandwidth": "B/s", "operation_s": "s"}.get(name)
    return figure | {key: end if unit is None else f"{end:.6g}{unit}" for key, end in ends.items()}


def _forget() -> None:
    for kept in (catalogue._device, catalogue._host, machine._resolved, profiles._calibration):
        kept.cache_clear()


def _told(cell: Cell, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """What an answer needs to find questions like its own."""
    one = asked(row, rows, {}, calibrated=False)
    assert isinstance(one, RowScenario)
    assert cell.error is not None
    assert cell.published is not None
    assert cell.low is not None
    assert cell.high is not None
    scenario, spec = one.scenario, one.scenario.cluster
    return {
        "paper": cell.paper,
        "table": cell.table,
        "device": spec.device,
        "transport": machine.resolve_machine(spec).between.transport,
        "servers": spec.servers,
        "gpus": spec.gpus,
        "method": scenario.method.name,
        "minibatch": scenario.method.mini_batches,
        "attention": scenario.workload.model == "gat",
        "error": float(f"{cell.error:.3g}"),
        "inside": bool(cell.low <= cell.published <= cell.high),
    }


def _lines(told: Sequence[Mapping[str, Any]]) -> list[str]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for each in told:
        groups.setdefault(f"{each['paper']} {each['table']}", []).append(each)
    rows = [(name, *_figures(each)) for name, each in groups.items()]
    rows.append(("all", *_figures(told)))
    return aligned(rows, ("table", "rows", "median error", "mean", "in their range"))


def _figures(told: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    errors = np.array([each["error"] for each in told])
    inside = float(np.mean([each["inside"] for each in told]))
    median, mean = float(np.median(np.abs(errors))), float(errors.mean())
    return str(len(told)), f"{100 * median:.0f} %", f"{100 * mean:+.0f} %", f"{100 * inside:.0f} %"


if __name__ == "__main__":
    sys.exit(main())
