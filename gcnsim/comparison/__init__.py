"""Comparison: two iterations side by side, and where the difference went."""

from gcnsim.comparison.answers import read_answer
from gcnsim.comparison.difference import PARTS, SCHEMA, compare
from gcnsim.comparison.profiled import side_of_profile
from gcnsim.comparison.recorded import side_of_run
from gcnsim.comparison.sides import Side, side_of_result

__all__ = ["PARTS", "SCHEMA", "Side", "compare", "read_answer", "side_of_profile", "side_of_result", "side_of_run"]
