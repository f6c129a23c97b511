"""Staleness: which iteration's boundary values an iteration reads, and where they wait."""

from gcnsim.staleness.rule import age, slot, source_iteration

__all__ = ["age", "slot", "source_iteration"]
