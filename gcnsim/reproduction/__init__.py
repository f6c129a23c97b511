"""Published tables beside predictions: every row that may be fitted or is to be predicted blind."""

from gcnsim.reproduction.asking import Asked, asked, setting, settings
from gcnsim.reproduction.cells import Cell, error_of, reproduce
from gcnsim.reproduction.facts import SHIPPED, Row, of_papers, read_published
from gcnsim.reproduction.fitted import is_fitted
from gcnsim.reproduction.summary import payload

__all__ = [
    "SHIPPED",
    "Asked",
    "Cell",
    "Row",
    "asked",
    "error_of",
    "is_fitted",
    "of_papers",
    "payload",
    "read_published",
    "reproduce",
    "setting",
    "settings",
]
