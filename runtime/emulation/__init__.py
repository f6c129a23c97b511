"""A cluster on one machine: hosts that are network namespaces, links shaped to a bandwidth, torchrun in each host.

Whatever is made carries the number of the process that made it, lives in namespaces of its own (nothing of the
machine's own network is touched), and is removed however that process ends. All hosts share the machine's cores.
"""

from runtime.emulation.spec import Accelerator, Emulation
from runtime.launch.watch import end_with_agent

__all__ = ["Accelerator", "Emulation", "end_with_agent"]
