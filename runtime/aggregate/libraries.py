"""Which library computes the sums: plain torch, our own kernels compiled by Numba, or DGL."""

from __future__ import annotations

from gcnsim.errors import ScenarioError
from runtime.aggregate.matrix import Matrix, PlainMatrix
from runtime.aggregate.numba_matrix import NumbaMatrix


def matrix_kind(name: str) -> type[Matrix]:
    """The class behind `--aggregator name`; raises ScenarioError when DGL is asked for and cannot be imported."""
    if name == "plain":
        return PlainMatrix
    if name == "numba":
        return NumbaMatrix
    try:
        from runtime.aggregate.dgl_matrix import DglMatrix
    except ImportError as error:
        raise ScenarioError(
            f"--aggregator: dgl cannot be imported ({error}); install it (pip install 'gcnsim[dgl]') or use plain"
        ) from None
    return DglMatrix
