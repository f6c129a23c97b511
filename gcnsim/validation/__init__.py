"""Predictions beside measurements of other runs: how far off, in which phase, and whether the ranking holds."""

from gcnsim.validation.report import payload
from gcnsim.validation.run_check import RunCheck, judge
from gcnsim.validation.summary import by_configuration, summarise

__all__ = ["RunCheck", "by_configuration", "judge", "payload", "summarise"]
