"""Published tables beside predictions: every row that may be fitted or is to be predicted blind."""

from gcnsim.reproduction.facts import SHIPPED, Row, of_papers, read_published
from gcnsim.reproduction.row_scenario import RowScenario, asked, setting
from gcnsim.reproduction.table_cells import Cell, error_of, payload, reproduce

__all__ = [
    "SHIPPED",
    "Cell",
    "Row",
    "RowScenario",
    "asked",
    "error_of",
    "of_papers",
    "payload",
    "read_published",
    "reproduce",
    "setting",
]
