"""METIS with several weights per node, each balanced: what its C function does and pymetis does not hand on.

The library is the one that pymetis ships, called as `metis.h` declares it, with the options that pymetis made. With one
weight the owners are those of pymetis, which a test holds.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.ids import AnyArray

_DONE: Final = 1
"""METIS_OK."""


def balanced_owners(
    indptr: AnyArray, indices: AnyArray, weights: AnyArray, parts: int, options: Any, *, recursive: bool
) -> tuple[int, AnyArray]:
    """The objective's value, and the part of each node, so that each column of `weights` [N, C] is balanced.

    indptr, indices: the graph in pymetis' integers. options: of pymetis. recursive: by bisection. Raises GraphError
    where pymetis hides the library's function, RuntimeError where METIS fails.
    """
    from pymetis import _internal

    name = "METIS_PartGraphRecursive" if recursive else "METIS_PartGraphKway"
    try:
        cut = getattr(ctypes.CDLL(_internal.__file__), name)
        chosen = [options._get(place) for place in range(type(options)._len())]
    except (OSError, AttributeError) as error:
        raise GraphError(
            f"this pymetis does not balance two things at a time ({error}); partition balance: nodes or edges"
        ) from None
    kind = indptr.dtype
    nodes, columns = weights.shape
    value, owner = np.zeros(1, kind), np.zeros(nodes, kind)
    # Arrays are named so that they live as long as the call. None: METIS' own sizes, shares and tolerances.
    numbers = [np.array([number], kind) for number in (nodes, columns, parts)]
    rows, columns_of, flat = (np.ascontiguousarray(array, kind) for array in (indptr, indices, weights))
    options_array = np.array(chosen, kind)
    found = cut(
        *map(_address, (numbers[0], numbers[1], rows, columns_of, flat)),
        *(None, None, _address(numbers[2]), None, None),
        *map(_address, (options_array, value, owner)),
    )
    if found != _DONE:
        raise RuntimeError(f"METIS returned {found}")
    return int(value[0]), owner


def _address(array: AnyArray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
