"""Comparison: two iterations side by side, and where the difference went."""

from gcnsim.comparison.difference import PARTS, compare, read_answer
from gcnsim.comparison.iteration_report import IterationReport, report_of_profile, report_of_result, report_of_run

__all__ = [
    "PARTS",
    "IterationReport",
    "compare",
    "read_answer",
    "report_of_profile",
    "report_of_result",
    "report_of_run",
]
