"""Published systems, one file each: facts in, schedule out."""

from gcnsim.methods.facts import Facts, method, methods

__all__ = ["Facts", "method", "methods"]
