"""The machine of a question: its cluster as links with capacities and devices with figures."""

from gcnsim.machine.links import NVLINK, devices_of, refuse_idle, refuse_unused
from gcnsim.machine.payload_share import payload_shares
from gcnsim.machine.platform import (
    SPREAD,
    beside_cache,
    platform_of,
    rate_beside_copies,
    rebuild_s,
    streaming_share,
)
from gcnsim.machine.replaced import with_drawn, with_given
from gcnsim.machine.resolve import (
    CALIBRATED,
    HOST_MEMORY,
    calibration_of,
    device_link,
    for_graph,
    machine,
    profiles,
    with_fitted,
)

__all__ = [
    "CALIBRATED",
    "HOST_MEMORY",
    "NVLINK",
    "SPREAD",
    "beside_cache",
    "calibration_of",
    "device_link",
    "devices_of",
    "for_graph",
    "machine",
    "payload_shares",
    "platform_of",
    "profiles",
    "rate_beside_copies",
    "rebuild_s",
    "refuse_idle",
    "refuse_unused",
    "streaming_share",
    "with_drawn",
    "with_fitted",
    "with_given",
]
