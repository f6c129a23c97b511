"""Capacity planning: which machine and setting to take for a target, of hundreds, and how sure that is."""

from gcnsim.capacity.answer import Question, Recommended, recommend
from gcnsim.capacity.goal import COST, GPUS, MINIMISED, TIME, Goal
from gcnsim.capacity.machines import Machines, Permitted
from gcnsim.capacity.sampled import LIMIT

__all__ = [
    "COST",
    "GPUS",
    "LIMIT",
    "MINIMISED",
    "TIME",
    "Goal",
    "Machines",
    "Permitted",
    "Question",
    "Recommended",
    "recommend",
]
