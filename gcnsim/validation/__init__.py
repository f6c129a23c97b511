"""Predictions beside measurements of other runs: how far off, in which phase, and whether the ranking holds."""

from gcnsim.validation.judged import Judged, judge
from gcnsim.validation.report import payload
from gcnsim.validation.summary import by_configuration, summarise

__all__ = ["Judged", "by_configuration", "judge", "payload", "summarise"]
