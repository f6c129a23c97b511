"""Start workers, supervise them, and the worker's side of it: its rank, when to stop, its last message.

The same command line runs in the parent and in every worker; the environment distinguishes them. Invariant: however the
parent ends, even by SIGKILL, no worker outlives it. However a worker ends, the parent reports which one and why.
Nothing here imports torch before a worker connects.
"""

from runtime.launch.launchers import Place, place
from runtime.launch.parent import launch
from runtime.launch.verdict import report_failure
from runtime.launch.watch import Watch
from runtime.launch.worker import check_libraries, connect, disable_malloc_trim, run_worker
