"""How far off answers are for machines that nobody measured: `python -m studies.given_rows [--write]`.

Every row of published tables that may be fitted is predicted without any fitted figure, and without what its own
table taught: the range of an assumed figure is then that of the values fitted to all other tables (`FITTED`), a
margin of `MARGIN` around them (its value in the middle, chosen with all rows in view, stays), and a device or host
has no figure of its own that was fitted to the table's paper. Prints the errors and how many times lie in their
range; --write stores them as `gcnsim/data/given_rows.yaml`, from which answers say how far off like questions were.
Rows whose printed time is impossible, and ratios that are 1 by definition, are left out.

Beside each stands the same row calibrated: with figures fitted to the other tables of its servers (those of
`docs/reproduce.json`, and the error that these tables leave), where there are others that are fitted.
"""

from __future__ import annotations

import argparse
import operator
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import yaml

from gcnsim.core.atomic import atomic_write
from gcnsim.core.terminal import aligned
from gcnsim.evidence.published_facts import FactRow, read_published
from gcnsim.evidence.published_quantities import WHOLE_S
from gcnsim.evidence.published_systems import RowScenario, scenario_of_row
from gcnsim.evidence.table_cells import Cell, reproduce
from gcnsim.hardware import QUANTITIES, catalogue
from gcnsim.hardware.profiles import read_figure
from gcnsim.scenario import machine
from gcnsim.scenario import machine_profiles as profiles
from studies.fit_published import Table
from studies.other_tables import OtherTables

OUT: Final = Path(__file__).resolve().parents[1] / "gcnsim" / "data" / "given_rows.yaml"

MARGIN: Final = 1.25
"""Few values say little of how far the next one may be."""

SERVER: Final = (("pipegcn", "table2"), ("pipegcn", "table4"), ("pipegcn", "table6"), ("bns_gcn", "table11"))

FITTED: Final[Mapping[tuple[str, str], Sequence[tuple[float, Sequence[Table]]]]] = {
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
    entries = given_rows()
    sys.stdout.write("\n".join([*_lines(entries), ""]))
    if given.write:
        with atomic_write(OUT, text=True) as file:
            file.write(
                "# Written by `python -m studies.given_rows --write`: times that others measured on GPUs, each\n"
            )
            file.write("# predicted without any figure that was fitted, and without what its own table taught.\n")
            file.writelines(
                f"- {yaml.safe_dump(entry, default_flow_style=True, width=1000).strip()}\n" for entry in entries
            )
    return 0


def given_rows() -> list[dict[str, Any]]:
    """What the file says of every row."""
    rows = [row for row in read_published() if row.use == "calibrate"]
    with tempfile.TemporaryDirectory() as folder:
        found = list(left_out(rows, OtherTables(rows, Path(folder))))
    return [_setting_facts(cell, fitted, row, rows) for cell, fitted, row in found]


def left_out(rows: Sequence[FactRow], others: OtherTables) -> Iterator[tuple[Cell, Cell | None, FactRow]]:
    """The judged cells of whole iterations, each with its row, predicted without what its own table taught; and the
    same with figures fitted to other tables of its servers, None where there are none."""
    for table in sorted({(row.paper, row.table) for row in rows}):
        own = [row for row in rows if (row.paper, row.table) == table]
        fitted = others.without(table)
        with without(table):
            for row in own:
                wanted = partial(operator.is_, row)
                beside = {}
                if _scenario(row, rows).scenario.cluster.platform in fitted:
                    beside = {cell.metric: cell for cell in reproduce(rows, platforms=fitted, wanted=wanted)}
                for cell in reproduce(rows, calibrated=False, wanted=wanted):
                    if cell.error is not None and (cell.metric in WHOLE_S or cell.metric == "epochs_per_s"):
                        yield cell, beside.get(cell.metric), row


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
        text = PAPERS.get(table[0], "no paper at all")
        return {
            key: value
            for key, value in stored(kind, name).items()
            if not (isinstance(value, dict) and f"fitted to {text}" in str(value.get("reference")))
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


def _scenario(row: FactRow, rows: Sequence[FactRow]) -> RowScenario:
    one = scenario_of_row(row, rows, {})
    assert isinstance(one, RowScenario), one
    return one


def _setting_facts(cell: Cell, fitted: Cell | None, row: FactRow, rows: Sequence[FactRow]) -> dict[str, Any]:
    """What an answer needs to find questions like its own. calibrated_error, calibrated_inside: with figures fitted to
    other tables of the servers, null where there are none."""
    one = _scenario(row, rows)
    scenario, spec = one.scenario, one.scenario.cluster
    # Of very many workers a few are simulated.
    gpus = one.parts or spec.gpus
    error, inside = _off(cell)
    calibrated = (None, None) if fitted is None else _off(fitted)
    return {
        "paper": cell.paper,
        "table": cell.table,
        "device": spec.device,
        "transport": machine.resolve_machine(replace(spec, platform=None)).between.transport,
        "servers": -(-gpus // spec.gpus_per_server),
        "gpus": gpus,
        "method": scenario.method.name,
        "minibatch": scenario.method.mini_batches,
        "attention": scenario.workload.model == "gat",
        "error": error,
        "inside": inside,
        "calibrated_error": calibrated[0],
        "calibrated_inside": calibrated[1],
    }


def _off(cell: Cell) -> tuple[float, bool]:
    """The error, and whether the time is in the range."""
    assert cell.error is not None
    assert cell.published is not None
    assert cell.low is not None
    assert cell.high is not None
    return float(f"{cell.error:.3g}"), bool(cell.low <= cell.published <= cell.high)


def _lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(f"{entry['paper']} {entry['table']}", []).append(entry)
    groups["all"] = list(entries)
    rows = [(name, *_figures(group, ""), *_figures(group, "calibrated_")) for name, group in groups.items()]
    figures = ("rows", "median error", "mean", "in their range")
    return aligned(rows, ("table", *figures, "calibrated", *figures[1:]))


def _figures(entries: Sequence[Mapping[str, Any]], kind: str) -> tuple[str, ...]:
    known = [entry for entry in entries if entry[f"{kind}error"] is not None]
    if not known:
        return "0", "", "", ""
    errors = np.array([entry[f"{kind}error"] for entry in known])
    inside = float(np.mean([entry[f"{kind}inside"] for entry in known]))
    median, mean = float(np.median(np.abs(errors))), float(errors.mean())
    return str(len(known)), f"{100 * median:.0f} %", f"{100 * mean:+.0f} %", f"{100 * inside:.0f} %"


if __name__ == "__main__":
    sys.exit(main())
