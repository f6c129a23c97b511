"""Workers of which several hold the same block of rows (CAGNET, 1.5D): who holds which, and who multiplies which.

Block b is what the parts of the workers b c to b c + c - 1 are together, and these c workers hold it. Member m of each
block's c holders multiplies the m-th share of the blocks, the last one what is left; those that it needs come from
members m of the other blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gcnsim.ids import Rank, frozen
from gcnsim.partition.parts import Partitioning


@dataclass(frozen=True, slots=True)
class Replicas:
    """`workers` workers, `copies` of which hold each block; `copies` divides `workers`.

    >>> [list(Replicas(6, 2).stages(member)) for member in (0, 1)]
    [[0], [1, 2]]
    """

    workers: int
    copies: int

    @property
    def blocks(self) -> int:
        """G, the number of blocks."""
        return self.workers // self.copies

    def block(self, rank: Rank) -> int:
        """The block that a worker holds."""
        return rank // self.copies

    def member(self, rank: Rank) -> int:
        """Its place among those that hold it."""
        return rank % self.copies

    def holders(self, block: int) -> list[Rank]:
        """The workers that hold `block`, in the order of their places."""
        return [block * self.copies + member for member in range(self.copies)]

    def ring(self, member: int) -> list[Rank]:
        """The workers with place `member` among the holders of each block, in the order of the blocks."""
        return [block * self.copies + member for block in range(self.blocks)]

    def stages(self, member: int) -> range:
        """The blocks that this member of each block's holders multiplies."""
        each = self.blocks // self.copies
        last = member == self.copies - 1
        return range(member * each, self.blocks if last else (member + 1) * each)

    def merged(self, partitioning: Partitioning) -> Partitioning:
        """The blocks as parts of their own."""
        owner = partitioning.owner // self.copies
        return replace(partitioning, owner=frozen(owner), parts=self.blocks, method="file")


def allowed_copies(workers: int) -> str:
    """In words, how many of so many workers may hold the same block."""
    return ", ".join(str(n) for n in range(2, workers + 1) if workers % n == 0) or "none with one worker"
