"""What methods that broadcast whole blocks of rows have in common before anything is trained; no torch."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.errors import ScenarioError
from runtime.methods.method import Method
from runtime.options import Options


@dataclass(frozen=True)
class BlockMethod(Method):
    """Base of the methods whose workers broadcast blocks."""

    def refuse(self, options: Options) -> None:
        """Attention, whose weights no block has by itself; masks of each receiver, through which no sum goes back."""
        if options.model == "gat":
            raise ScenarioError(f"--model: gat with {self.name}, which sums blocks; allowed: gcn, graphsage")
        if options.dropout and options.dropout_order != "dropout-first":
            raise ScenarioError(
                f"--dropout-order: {options.dropout_order} with {self.name}, whose gradients are summed block by block "
                "for rows that all workers have alike; allowed with dropout: dropout-first"
            )
