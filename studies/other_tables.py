"""Platforms as they would be fitted had nobody seen one of their tables: for `studies/given_rows.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gcnsim.evidence.published_facts import FactRow
from gcnsim.hardware import platforms
from studies.fit_published import FEW_ERROR, LEFT_OUT, Table, expected_error
from studies.published_coefficients import COEFFICIENTS, Trials, assumed, document, errors


class OtherTables:
    """The fits without each table, as `docs/reproduce.json` keeps them. folder: of the platforms' files."""

    def __init__(self, rows: Sequence[FactRow], folder: Path) -> None:
        kept: dict[str, Any] = json.loads(LEFT_OUT.read_text(encoding="utf-8"))
        self.fitted: Mapping[str, float] = kept["coefficients"]
        self.moved: Mapping[Table, Mapping[str, float]] = {
            (table["paper"], table["table"]): table["moved"] for table in kept["tables"]
        }
        self.folder = folder
        (folder / "trials").mkdir()
        self.trials = Trials(rows, folder / "trials")

    def without(self, table: Table) -> dict[str, str]:
        """The file of each platform that is fitted to other tables, by its name: figures and the error to expect as
        those tables alone give them."""
        if table not in self.moved:
            return {}
        values = assumed() | dict(self.fitted) | dict(self.moved[table])
        found = {name: self._file(name, table, values) for name in platforms()}
        return {name: path for name, path in found.items() if path is not None}

    def _file(self, name: str, table: Table, values: Mapping[str, float]) -> str | None:
        cells = self.trials.cells(name, values)
        if not any((cell.paper, cell.table) == table for cell in cells):
            return None
        others = [cell for cell in cells if cell.fitted and (cell.paper, cell.table) != table]
        if not others:
            return None
        fed = [one for one in COEFFICIENTS if one.name in self.fitted and name in dict(one.figures)]
        known = len({(cell.paper, cell.table, cell.row) for cell in others}) > len(fed)
        error = expected_error(np.abs(errors(others)), len(fed)) if known else FEW_ERROR
        raw = yaml.safe_load(document(name, values))
        raw.pop("unexplained_s", None)
        raw["error"] = {
            "value": f"{100 * error:.6g}%",
            "source": "fitted",
            "reference": "half of the 90 % interval of the errors of the other tables",
            "date": raw["rate_beside_copies"]["date"],
        }
        path = self.folder / f"{name}-without-{table[0]}-{table[1]}.yaml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False), encoding="utf-8")
        return str(path)
