"""Starting workers, watching over them, and the worker's side of it: where it stands, when to leave, its last words.

The same command line runs in the parent and in every worker; the environment tells them apart. Invariant: however the
parent ends, SIGKILL included, no worker outlives it, and however a worker ends, the parent says which one and why.
Nothing here imports torch before a worker connects.
"""

from runtime.launch.group import connect
from runtime.launch.parent import launch
from runtime.launch.place import Place, place
from runtime.launch.verdict import report_failure
from runtime.launch.watch import Watch
from runtime.launch.worker import check_libraries, disable_malloc_trim, run_worker

__all__ = [
    "Place",
    "Watch",
    "check_libraries",
    "connect",
    "disable_malloc_trim",
    "launch",
    "place",
    "report_failure",
    "run_worker",
]
