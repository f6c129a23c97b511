"""Files a training run leaves for the simulator."""

from gcnsim.record.norms import read_norms, write_norms

__all__ = ["read_norms", "write_norms"]
