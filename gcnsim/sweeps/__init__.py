"""Sweeps: thousands of settings of a scenario, each answered once, in a folder that keeps what is done."""

from gcnsim.sweeps.folder import Folder, open_folder
from gcnsim.sweeps.points import Point, Settings, hash_of, points_of
from gcnsim.sweeps.question import INTERVALS, SAMPLES, Question, load_question, read_question
from gcnsim.sweeps.run import LIMIT, Plan, Progress, plan, run
from gcnsim.sweeps.table import LEAD, OF_ROW, Filter, read_filters
from gcnsim.sweeps.work import DONE, LOST, NAMES, REFUSED, STATES, TOO_LARGE, Executor, executor_of

__all__ = [
    "DONE",
    "INTERVALS",
    "LEAD",
    "LIMIT",
    "LOST",
    "NAMES",
    "OF_ROW",
    "REFUSED",
    "SAMPLES",
    "STATES",
    "TOO_LARGE",
    "Executor",
    "Filter",
    "Folder",
    "Plan",
    "Point",
    "Progress",
    "Question",
    "Settings",
    "executor_of",
    "hash_of",
    "load_question",
    "open_folder",
    "plan",
    "points_of",
    "read_filters",
    "read_question",
    "run",
]
