"""One run: where accesses come from, scenario in, result out; its diagnosis, and the effect of assumptions."""

from gcnsim.simulation.faults import refuse_undrawn
from gcnsim.simulation.measured_setting import answering, measured_methods
from gcnsim.simulation.metrics import balanced_parts, link_units, worker_parts
from gcnsim.simulation.run import Result, simulate_scenario, tightest, write_schedule
from gcnsim.simulation.time_limit import GRAIN, wrong_by
