"""What methods that broadcast whole blocks of rows have in common before anything is trained; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.errors import ScenarioError
from runtime.methods.method import Method
from runtime.options import Options


@dataclass(frozen=True)
class BlockMethod(Method):
    """Base of the methods whose workers broadcast blocks."""

    alone: ClassVar[bool] = False

    def refuse(self, options: Options) -> None:
        """Attention and pooling, which no block has by itself; masks of receivers, through which no sum goes back."""
        if options.gathers:
            name = "--sage-aggregator: pool" if options.pools else f"--model: {options.model}"
            allowed = "mean" if options.pools else "gcn, graphsage"
            raise ScenarioError(f"{name} with {self.name}, which sums blocks; allowed: {allowed}")
        if options.dropout and options.dropout_order != "dropout-first":
            raise ScenarioError(
                f"--dropout-order: {options.dropout_order} with {self.name}, whose gradients are summed block by block "
                "for rows that all workers have alike; allowed with dropout: dropout-first"
            )
