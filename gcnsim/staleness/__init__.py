"""Staleness: which iteration's boundary values an iteration reads, where they wait, and when blocks are sent anew."""

from gcnsim.staleness.blocks import BlockRule, is_due, sent_blocks
from gcnsim.staleness.rule import age, slot, source_iteration

__all__ = ["BlockRule", "age", "is_due", "sent_blocks", "slot", "source_iteration"]
