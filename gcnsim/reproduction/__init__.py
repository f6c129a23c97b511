"""Published tables with predictions: every row that may be fitted or is predicted blind."""

from gcnsim.reproduction.facts import SHIPPED, FactRow, of_papers, read_published
from gcnsim.reproduction.row_scenario import RowScenario, scenario_of_row, setting
from gcnsim.reproduction.table_cells import Cell, error_of, payload, reproduce

__all__ = [
    "SHIPPED",
    "Cell",
    "FactRow",
    "RowScenario",
    "error_of",
    "of_papers",
    "payload",
    "read_published",
    "reproduce",
    "scenario_of_row",
    "setting",
]
