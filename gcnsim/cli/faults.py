"""The faults that `--inject` takes, for the help of the commands that have it."""

from __future__ import annotations

from typing import Final

from gcnsim.scenario import fault_lines

FAULTS: Final = "\n".join(
    ["\b", "Faults of --inject, each with its fields at their defaults:", *(f"  {line}" for line in fault_lines())]
)
"""The end of a command's help."""
