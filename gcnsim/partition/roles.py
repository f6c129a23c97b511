"""How the nodes that train, validate and test lie in the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gcnsim.ids import BoolArray
from gcnsim.partition.facts import Spread, spread_of
from gcnsim.partition.parts import Partitioning

ROLES: Final = ("training", "validation", "test")


def role_spreads(masks: Sequence[BoolArray] | None, owners: Partitioning) -> Mapping[str, Spread]:
    """Nodes of each role over the parts, by name: of `masks`, bool[N] in the order of `ROLES`.

    A role that no node has is left out; None: nobody says.
    """
    return {
        role: spread_of(np.bincount(owners.owner[mask], minlength=owners.parts).tolist())
        for role, mask in zip(ROLES, masks or (), strict=False)
        if mask.any()
    }
