"""Sweeps: thousands of settings of a scenario, each answered once, in a folder that can be resumed."""

from gcnsim.sweeps.folder import Folder, open_folder
from gcnsim.sweeps.points import Settings, points_of
from gcnsim.sweeps.question import INTERVALS, SAMPLES, Question, load_question, read_question
from gcnsim.sweeps.run import LIMIT, Plan, Progress, plan, run
from gcnsim.sweeps.table import OF_ROW, read_filters
from gcnsim.sweeps.work import DONE, LOST, NAMES, REFUSED, STATES, TOO_LARGE, executor_of

__all__ = [
    "DONE",
    "INTERVALS",
    "LIMIT",
    "LOST",
    "NAMES",
    "OF_ROW",
    "REFUSED",
    "SAMPLES",
    "STATES",
    "TOO_LARGE",
    "Folder",
    "Plan",
    "Progress",
    "Question",
    "Settings",
    "executor_of",
    "load_question",
    "open_folder",
    "plan",
    "points_of",
    "read_filters",
    "read_question",
    "run",
]
