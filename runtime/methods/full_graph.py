"""Vanilla partition-parallel training (`full-graph`): every boundary row and gradient of the same iteration.

Equal to training in one process up to the order of sums. `--overlap none` waits for the rows before it sums anything,
as the published baselines do; `central` sums what needs no other worker beneath the transfer.
"""

from __future__ import annotations

from runtime.methods.method import Method

TRAINER = Method
