"""The small partitioned graph and the real graphs of the traces' tests."""

from tests.gcnsim.trace.conftest import line, real, small

__all__ = ["line", "real", "small"]
