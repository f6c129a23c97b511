"""Types for the numbers of the domain: one word, one meaning (docs/glossary.md)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnsim.core.shapes import Amount, Count

Rank: TypeAlias = Count
"""A worker, its partition and its GPU: the same number, 0-based."""

Server: TypeAlias = Count
"""A machine with one or more GPUs and one NIC, 0-based."""

Iteration: TypeAlias = Count
"""One model update, 0-based."""

Layer: TypeAlias = int
"""One graph convolution, 0-based; layer l maps width d_l to d_(l+1)."""

Seconds: TypeAlias = Amount
Bytes: TypeAlias = Amount

IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
BoolArray: TypeAlias = NDArray[np.bool_]
ByteArray: TypeAlias = NDArray[np.uint8]
AnyArray: TypeAlias = NDArray[Any]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of `array`: immutable dataclasses contain no writable array."""
    view = array.view()
    view.flags.writeable = False
    return view
