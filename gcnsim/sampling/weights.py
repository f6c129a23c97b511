"""The weights of the propagation matrix P = D~^(-1/2) (A + I) D~^(-1/2) on one worker's rows."""

from __future__ import annotations

import numpy as np

from gcnsim.ids import Float32Array, FloatArray, IntArray
from gcnsim.partition import Part


def edge_weights(part: Part) -> Float32Array:
    """|P_ij| of every stored entry of `part`: 1 / sqrt((deg_i + 1)(deg_j + 1)), float32[nnz] aligned to `part.columns`.

    Degrees are those of the whole graph, so the weight does not depend on the partition (Kipf and Welling's
    renormalisation). Self-loops, weight 1 / (deg_i + 1), are not stored and not returned.
    """
    scaled_columns = column_scale(part)[part.columns]
    rows = 1.0 / np.sqrt(part.inner_degree + 1.0)
    scaled_columns *= np.repeat(rows.astype(np.float32), np.diff(part.indptr))
    return scaled_columns


def column_scale(part: Part) -> Float32Array:
    """1 / sqrt(deg_j + 1) of every local id j (inner ones, then boundary ones), float32[I + B]."""
    degrees: IntArray = np.concatenate([part.inner_degree, part.boundary_degree])
    scale: FloatArray = 1.0 / np.sqrt(degrees + 1.0)
    return scale.astype(np.float32)
