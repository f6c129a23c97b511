"""The machine of a question: its links with capacities and its devices with figures, resolved once."""

from gcnsim.machine.between_gpus import NVLINK_THERE, TRANSPORT, BetweenGpus
from gcnsim.machine.links import degree_spread, offered, streaming_share, with_l2_cache
from gcnsim.machine.machine import Machine, payload_shares, refuse_no_effect, refuse_unused, resolve_machine
from gcnsim.machine.profiles import CALIBRATED, NVLINK, for_graph, with_drawn, with_fitted

__all__ = [
    "CALIBRATED",
    "NVLINK",
    "NVLINK_THERE",
    "TRANSPORT",
    "BetweenGpus",
    "Machine",
    "degree_spread",
    "for_graph",
    "offered",
    "payload_shares",
    "refuse_no_effect",
    "refuse_unused",
    "resolve_machine",
    "streaming_share",
    "with_drawn",
    "with_fitted",
    "with_l2_cache",
]
