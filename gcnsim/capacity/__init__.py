"""Capacity planning: which machine and setting to take for a target, of hundreds, and with what chance."""

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
