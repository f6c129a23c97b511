"""Capacity planning: choose a machine and a setting that meet a target, with the chance of meeting it."""

from gcnsim.capacity.answer import Question, recommend
from gcnsim.capacity.goal import CONFIDENCE, COST, GPUS, MINIMISED, TIME, Goal, read_budget
from gcnsim.capacity.settings import LIMIT, Machines

__all__ = [
    "CONFIDENCE",
    "COST",
    "GPUS",
    "LIMIT",
    "MINIMISED",
    "TIME",
    "Goal",
    "Machines",
    "Question",
    "read_budget",
    "recommend",
]
